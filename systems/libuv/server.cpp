// Servers: a loop for each thread, each with its own listener (SO_REUSEPORT), since a loop belongs to one thread.
#include "server.hpp"
#include "linerate/event_loop.hpp"

using namespace linerate;

namespace {

template <class Session> void serve(const Spec& spec) {
    Shared shared(spec);
    std::uint16_t port = spec.listen.port;
    auto loops = make_loops(spec.threads);
    std::vector<std::unique_ptr<Server<Session>>> servers;
    for (auto& loop : loops) {
        servers.push_back(std::make_unique<Server<Session>>(shared, loop));
        // The others listen at the first one's port.
        port = servers.back()->listen(sockaddr_of(spec.listen.ip, port), spec.threads > 1);
    }
    emit_ready(spec.listen.ip, port);
    run_loops(loops);
}

} // namespace

void serve_http(const Spec& spec) { serve<Http>(spec); }
void serve_tcp(const Spec& spec) { need_protocol(spec, true), serve<Tcp>(spec); }
