#include "conversations.hpp"
#include "plain.hpp"
#include "threads.hpp"


std::vector<linerate::Ability> websocket_conversations() {
    return linerate::conversations({"websocket"}, serve_threads<Websocket<tcp::socket>>, drive_threads<Websocket<tcp::socket>>);
}
