// TCP, UDP and KCP on one io_service (NOTES.md). The only source file: with KCP yasio's headers cannot be included in two.
#define LINERATE_IMPLEMENTATION
#include "datagrams.hpp"
#include "kcp.hpp"
#include "stream.hpp"

namespace {

// Two hex digits each, as its headers print them.
std::string version() {
    auto part = [](int shift) { return std::to_string(YASIO_VERSION_NUM >> shift & 0xff); };
    return part(16) + "." + part(8) + "." + part(0);
}

} // namespace

int main(int argc, char** argv) {
    return linerate::start(argc, argv, {"yasio", version(), {
        {"server", "tcp", "stream", over_tcp::serve},
        {"client", "tcp", "stream", over_tcp::drive},
        {"server", "udp", "stream", over_udp::serve},
        {"client", "udp", "stream", over_udp::drive},
        {"server", "kcp", "stream", over_kcp::serve},
        {"client", "kcp", "stream", over_kcp::drive},
    }});
}
