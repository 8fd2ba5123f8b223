#define LINERATE_IMPLEMENTATION
#include "endpoints.hpp"
#include "linerate/protocol_spec.hpp"

#include <libwebsockets.h>

int main(int argc, char** argv) {
    using namespace linerate;
    auto abilities = both_ends("websocket", {"rr", "stream"}, serve, drive) + both_ends("wss", {"rr", "stream"}, serve, drive);
    return start(argc, argv, {"libwebsockets", lws_get_library_version(), abilities, {"service-buffer"}});
}
