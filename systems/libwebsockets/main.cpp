#define LINERATE_IMPLEMENTATION
#include "endpoints.hpp"
#include "linerate/conversation.hpp"

#include <libwebsockets.h>

int main(int argc, char** argv) {
    auto abilities = linerate::conversations({"websocket", "wss"}, serve, drive);
    return linerate::start(argc, argv, {"libwebsockets", lws_get_library_version(), abilities});
}
