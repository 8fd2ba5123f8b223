// No `dispatch`: libuv has no queue of handlers (NOTES.md).
#define LINERATE_IMPLEMENTATION
#include "linerate/event_loop.hpp"

#include <uv.h>

int main(int argc, char** argv) {
    using namespace linerate;
    return start(argc, argv, {"libuv", uv_version_string(), event_loop() + both_in_one_loop() + datagram_stream()});
}
