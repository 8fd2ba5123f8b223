// The program of asio-sync.
#include "linerate/event_loop.hpp"
#include "linerate/protocol_spec.hpp"
#include "tls.hpp"
#include "version.hpp"

int main(int argc, char** argv) {
    using namespace linerate;
    auto abilities = both_ends("tcp", {"rr", "stream"}, serve_tcp, drive_tcp) +
                     both_ends("tls", {"rr", "stream"}, serve_tls, drive_tls);
    return start(argc, argv, {"asio-sync", asio_version(), abilities});
}
