// The programs without TLS: asio-coro, and asio-standalone, which has UDP.
#include "linerate/event_loop.hpp"
#include "version.hpp"

int main(int argc, char** argv) {
    using namespace linerate;
    auto abilities = event_loop() + Abilities{{"client", "none", "dispatch", dispatch}};
#ifdef LINERATE_STANDALONE
    return start(argc, argv, {"asio-standalone", asio_version(), abilities + datagram_stream()});
#else
    return start(argc, argv, {"asio-coro", asio_version(), abilities});
#endif
}
