// The programs without TLS: asio-coro, asio-standalone, which has UDP, and those of systems/asio-loops. LINERATE_NAME is the
// program's name. A pool of loops has no queue that all threads share, so it does not dispatch.
#include "linerate/event_loop.hpp"
#include "version.hpp"

int main(int argc, char** argv) {
    using namespace linerate;
    auto abilities = event_loop() + both_in_one_loop();
#ifndef LINERATE_POOL
    abilities = abilities + Abilities{{"client", "none", "dispatch", dispatch}};
#endif
#ifdef LINERATE_STANDALONE
    abilities = abilities + datagram_stream();
#endif
    return start(argc, argv, {LINERATE_NAME, asio_version(), abilities});
}
