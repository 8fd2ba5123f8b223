#include "conversations.hpp"
#include "sessions.hpp"

std::vector<linerate::Ability> conversations() {
    auto all = linerate::conversations({"tcp"}, serve_sessions<PlainTransport>, drive_sessions<PlainTransport>);
    auto tls = linerate::conversations({"tls"}, serve_sessions<TlsTransport>, drive_sessions<TlsTransport>);
    all.insert(all.end(), tls.begin(), tls.end());
    return all;
}
