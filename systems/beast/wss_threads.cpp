#include "conversations.hpp"
#include "secure.hpp"
#include "threads.hpp"

using Transport = Wss<tcp::socket>;

std::vector<linerate::Ability> wss_conversations() {
    return linerate::conversations({"wss"}, serve_threads<Transport>, drive_threads<Transport>);
}
