// One program for each variant; CMakeLists.txt sets LINERATE_VARIANT and which sources and which Asio go with it.
#define LINERATE_IMPLEMENTATION
#include "abilities.hpp"

int main(int argc, char** argv) {
    return linerate::start(argc, argv, {LINERATE_VARIANT, asio_version(), {
        {"server", "http", "http", serve_http},
        {"server", "tcp", "rr", serve_echo},
        {"server", "tcp", "churn", serve_echo},
        {"server", "tcp", "fanout", serve_echo},
        {"server", "tcp", "stream", serve_stream},
        {"client", "tcp", "rr", drive_rr},
        {"client", "tcp", "churn", drive_churn},
        {"client", "tcp", "fanout", drive_fanout},
        {"client", "tcp", "stream", drive_stream},
#ifdef LINERATE_UDP
        {"server", "udp", "stream", serve_datagrams},
        {"client", "udp", "stream", drive_datagrams},
#endif
        {"client", "none", "dispatch", dispatch},
        {"client", "none", "timers", timers},
    }});
}
