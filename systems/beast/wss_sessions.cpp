#include "conversations.hpp"
#include "secure.hpp"
#include "sessions.hpp"
#include <boost/beast/core/tcp_stream.hpp>

std::vector<linerate::Ability> wss_conversations() {
    return linerate::conversations({"wss"}, serve_sessions<Wss<beast::tcp_stream>>, drive_sessions<Wss<beast::tcp_stream>>);
}
