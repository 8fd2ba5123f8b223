#include "conversations.hpp"
#include "secure.hpp"
#include "threads.hpp"


std::vector<linerate::Ability> wss_conversations() {
    return linerate::conversations({"wss"}, serve_threads<Wss<tcp::socket>>, drive_threads<Wss<tcp::socket>>);
}
