#include "conversations.hpp"
#include "plain.hpp"
#include "sessions.hpp"
#include <boost/beast/core/tcp_stream.hpp>

using Transport = Websocket<beast::tcp_stream>;

std::vector<linerate::Ability> websocket_conversations() {
    return linerate::conversations({"websocket"}, serve_sessions<Transport>, drive_sessions<Transport>);
}
