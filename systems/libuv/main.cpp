// No `dispatch`: libuv has no queue of handlers (NOTES.md).
#define LINERATE_IMPLEMENTATION
#include "linerate/event_loop.hpp"

#include <uv.h>

int main(int argc, char** argv) {
    auto abilities = linerate::event_loop({
        {"server", "udp", "stream", serve_datagrams},
        {"client", "udp", "stream", drive_datagrams},
    });
    return linerate::start(argc, argv, {"libuv", uv_version_string(), abilities});
}
