// The program of asio-async: everything of an event loop, and TLS.
#include "linerate/event_loop.hpp"
#include "linerate/protocol_spec.hpp"
#include "tls.hpp"
#include "version.hpp"

int main(int argc, char** argv) {
    using namespace linerate;
    auto abilities = event_loop() + both_in_one_loop() + datagram_stream() + both_ends("tls", {"rr", "stream"}, serve_tls, drive_tls) +
                     Abilities{{"client", "none", "dispatch", dispatch}};
    return start(argc, argv, {"asio-async", asio_version(), abilities});
}
