#include "conversations.hpp"
#include "threads.hpp"

std::vector<linerate::Ability> conversations() {
    auto all = linerate::conversations({"tcp"}, serve_threads<PlainTransport>, drive_threads<PlainTransport>);
    auto tls = linerate::conversations({"tls"}, serve_threads<TlsTransport>, drive_threads<TlsTransport>);
    all.insert(all.end(), tls.begin(), tls.end());
    return all;
}
