// Servers: one coroutine accepts, one serves each connection, and a second one writes where both ends send at once.
#include "linerate/event_loop.hpp"
#include "session.hpp"

using namespace linerate;

namespace {

// With several threads the two coroutines of a connection would need a strand.
void need_one_coroutine_per_connection(const Spec& spec) {
    if (spec.workload == "stream" && Direction(spec).is_both() && spec.threads > 1)
        throw Unsupported("a stream in both directions on several threads");
}

// State that all connections of a server share.
struct Shared {
    explicit Shared(const Spec& spec)
        : spec(spec), content(spec.workload == "stream" ? spec.size : 0), answers(spec.layer == "http" ? spec.size : 0),
          context(spec.threads) {}
    const Spec& spec;
    Content content;
    http::Answers answers;
    corosio::io_context context;
};

capy::task<> serve_one(corosio::tcp_socket socket, Shared& shared) {
    std::shared_ptr<Protocol> protocol = make_server(shared.spec, shared.content);
    auto session = std::make_shared<Session>(shared.context, std::move(socket), protocol, shared.spec);
    co_await run_protocol(session);
    session->socket.cancel(); // a second coroutine may still write
}

capy::task<> answer(corosio::tcp_socket socket, Shared& shared) {
    std::array<char, http::buffer> data;
    for (std::size_t filled = 0;;) {
        auto room = capy::mutable_buffer(data.data() + filled, data.size() - filled);
        auto [error, length] = co_await socket.read_some(room);
        if (error) co_return;
        filled += length;
        for (http::Request request; (request = http::parse({data.data(), filled})).state != http::Request::incomplete;) {
            std::string_view bytes = http::bad_request;
            if (request.state == http::Request::good) bytes = request.keep ? shared.answers.keep : shared.answers.close;
            auto [lost, written] = co_await capy::write(socket, capy::const_buffer(bytes.data(), bytes.size()));
            if (lost || !request.keep) co_return;
            filled -= request.length;
            std::memmove(data.data(), data.data() + request.length, filled);
        }
    }
}

using Serve = capy::task<> (*)(corosio::tcp_socket, Shared&);

capy::task<> accept(Shared& shared, corosio::tcp_acceptor& acceptor, Serve serve) {
    corosio::timer pause(shared.context);
    for (;;) {
        corosio::tcp_socket socket(shared.context);
        auto [error] = co_await acceptor.accept(socket);
        if (error) { // no descriptor, or the peer gave up
            pause.expires_after(std::chrono::milliseconds(10));
            co_await pause.wait();
            continue;
        }
        socket.set_option(corosio::socket_option::no_delay(true));
        capy::run_async(shared.context.get_executor())(serve(std::move(socket), shared));
    }
}

corosio::tcp_acceptor listen(Shared& shared) {
    auto where = endpoint(shared.spec.listen.ip, shared.spec.listen.port);
    corosio::tcp_acceptor acceptor(shared.context);
    if (auto error = error_of([&] { return acceptor.open(where.is_v6() ? corosio::tcp::v6() : corosio::tcp::v4()); }))
        throw std::system_error(error, "open");
    acceptor.set_option(corosio::socket_option::reuse_address(true));
    if (auto error = acceptor.bind(where)) throw std::system_error(error, "bind");
    if (auto error = acceptor.listen(backlog)) throw std::system_error(error, "listen");
    return acceptor;
}

void run_server(const Spec& spec, Serve serve) {
    Shared shared(spec);
    auto acceptor = listen(shared);
    emit_ready(spec.listen.ip, acceptor.local_endpoint().port());
    capy::run_async(shared.context.get_executor())(accept(shared, acceptor, serve));
    run(shared.context, spec.threads);
}

// Accepts each connection of the client in the same loop.
capy::task<> accept_all(Shared& shared, corosio::tcp_acceptor& acceptor, std::vector<corosio::tcp_socket>& accepted) {
    while (accepted.size() < shared.spec.connections) {
        corosio::tcp_socket socket(shared.context);
        auto [error] = co_await acceptor.accept(socket);
        if (error) throw std::system_error(error, "accept");
        socket.set_option(corosio::socket_option::no_delay(true));
        accepted.push_back(std::move(socket));
    }
}

// Client and server in one loop (`options.ends`).
void run_in_one_loop(const Spec& spec, Serve serve) {
    need_protocol(spec, true);
    need_one_coroutine_per_connection(spec);
    Spec server = spec, client = spec;
    server.role = "server", server.listen = {"127.0.0.1", 0};
    Shared shared(server);
    auto acceptor = listen(shared);
    client.connect = {server.listen.ip, acceptor.local_endpoint().port()};
    std::vector<corosio::tcp_socket> accepted;
    auto executor = shared.context.get_executor();
    capy::run_async(executor)(accept_all(shared, acceptor, accepted));
    drive(client, shared.context, [&] {
        for (auto& socket : accepted) capy::run_async(executor)(serve(std::move(socket), shared));
    });
}

} // namespace

void loop_tcp(const Spec& spec) { run_in_one_loop(spec, serve_one); }
void loop_http(const Spec& spec) { run_in_one_loop(spec, answer); }
void serve_http(const Spec& spec) { run_server(spec, answer); }
void serve_tcp(const Spec& spec) {
    need_protocol(spec, true);
    need_one_coroutine_per_connection(spec);
    run_server(spec, serve_one);
}
