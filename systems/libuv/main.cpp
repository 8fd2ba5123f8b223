// No `dispatch`: libuv has no queue of handlers (NOTES.md).
#define LINERATE_IMPLEMENTATION
#include "abilities.hpp"

#include <uv.h>

int main(int argc, char** argv) {
    return linerate::start(argc, argv, {"libuv", uv_version_string(), {
        {"server", "http", "http", serve_http},
        {"server", "tcp", "rr", serve_echo},
        {"server", "tcp", "churn", serve_echo},
        {"server", "tcp", "fanout", serve_echo},
        {"server", "tcp", "stream", serve_stream},
        {"server", "udp", "stream", serve_datagrams},
        {"client", "tcp", "rr", drive_rr},
        {"client", "tcp", "churn", drive_churn},
        {"client", "tcp", "fanout", drive_fanout},
        {"client", "tcp", "stream", drive_stream},
        {"client", "udp", "stream", drive_datagrams},
        {"client", "none", "timers", timers},
    }});
}
