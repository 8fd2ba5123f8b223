#define LINERATE_IMPLEMENTATION
#include "conversations.hpp"
#include "linerate/conversation.hpp"

#include <websocketpp/version.hpp>

int main(int argc, char** argv) {
    namespace v = websocketpp;
    auto version = std::to_string(v::major_version) + "." + std::to_string(v::minor_version) + "." +
                   std::to_string(v::patch_version);
    auto abilities = linerate::conversations({"websocket"}, serve_websocket, drive_websocket);
    for (const auto& each : linerate::conversations({"wss"}, serve_wss, drive_wss)) abilities.push_back(each);
    return linerate::start(argc, argv, {"websocketpp", version, abilities});
}
