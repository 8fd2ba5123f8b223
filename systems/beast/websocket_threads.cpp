#include "conversations.hpp"
#include "plain.hpp"
#include "threads.hpp"

using Transport = Websocket<tcp::socket>;

std::vector<linerate::Ability> websocket_conversations() {
    return linerate::conversations({"websocket"}, serve_threads<Transport>, drive_threads<Transport>);
}
