#include "conversations.hpp"
#include "plain.hpp"
#include "sessions.hpp"
#include <boost/beast/core/tcp_stream.hpp>

std::vector<linerate::Ability> websocket_conversations() {
    return linerate::conversations({"websocket"}, serve_sessions<Websocket<beast::tcp_stream>>, drive_sessions<Websocket<beast::tcp_stream>>);
}
