#include "conversations.hpp"
#include "secure.hpp"
#include "sessions.hpp"
#include <boost/beast/core/tcp_stream.hpp>

using Transport = Wss<beast::tcp_stream>;

std::vector<linerate::Ability> wss_conversations() {
    return linerate::conversations({"wss"}, serve_sessions<Transport>, drive_sessions<Transport>);
}
