#define LINERATE_IMPLEMENTATION
#include "endpoints.hpp"
#include "linerate/protocol_spec.hpp"

#include <websocketpp/version.hpp>

int main(int argc, char** argv) {
    namespace v = websocketpp;
    using namespace linerate;
    auto version = std::to_string(v::major_version) + "." + std::to_string(v::minor_version) + "." +
                   std::to_string(v::patch_version);
    auto abilities = both_ends("websocket", {"rr", "stream"}, serve_websocket, drive_websocket) +
                     both_ends("wss", {"rr", "stream"}, serve_wss, drive_wss);
    return start(argc, argv, {"websocketpp", version, abilities});
}
