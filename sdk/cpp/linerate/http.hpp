// One HTTP/1.1 parser of requests, and one of answers, so that systems differ in their event loops only.
#pragma once

#include "content.hpp"

#include <array>

namespace linerate {

namespace detail {

inline bool same_word(std::string_view a, std::string_view lower) {
    if (a.size() != lower.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if ((a[i] >= 'A' && a[i] <= 'Z' ? a[i] + 32 : a[i]) != lower[i]) return false;
    return true;
}

inline std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

// Characters of a field name (RFC 9110 section 5.6.2).
inline constexpr auto token_characters = [] {
    std::array<bool, 256> allowed{};
    for (int c = '!'; c < 127; ++c) allowed[c] = std::string_view("\"(),/:;<=>?@[\\]{}").find(char(c)) == std::string_view::npos;
    return allowed;
}();

inline bool is_token(std::string_view name) {
    for (unsigned char c : name)
        if (!token_characters[c]) return false;
    return !name.empty();
}

// No control characters (RFC 9110 section 5.5); a tab is one of the spaces.
inline bool is_text(std::string_view value) {
    for (unsigned char c : value)
        if ((c < ' ' && c != '\t') || c == 127) return false;
    return true;
}

} // namespace detail

namespace http {

// A server's read buffer, and the longest request head, in bytes.
inline constexpr std::size_t buffer = 16'384;
inline constexpr std::string_view bad_request = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

struct Request {
    enum { incomplete, good, bad } state = incomplete;
    std::size_t length = 0; // of the head, and so of the request: a GET has no body
    bool keep = true;       // the connection stays open after the answer
};

// The answers with a page of `size` bytes, head and body in one piece.
struct Answers {
    std::string keep, close;
    explicit Answers(std::size_t size) : keep(answer("keep-alive", size)), close(answer("close", size)) {}

private:
    static std::string answer(const char* connection, std::size_t size) {
        return "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " + std::to_string(size) +
               "\r\nConnection: " + connection + "\r\n\r\n" + page(size);
    }
};

// Parses one GET request at the start of `input` (RFC 9112). Any other input is bad and ends the connection.
inline Request parse(std::string_view input) {
    static constexpr std::string_view get = "GET ";
    const Request bad{Request::bad, 0, false}, incomplete{};
    if (input.substr(0, get.size()) != get.substr(0, input.size())) return bad;
    auto end = input.find("\r\n\r\n");
    if (end == input.npos) return input.size() < buffer ? incomplete : bad;

    auto line_end = input.find("\r\n");
    auto line = input.substr(get.size(), line_end - get.size());
    auto space = line.find(' ');
    if (space == 0 || space == line.npos || !detail::is_text(line)) return bad;
    auto version = line.substr(space + 1);
    bool v11 = version == "HTTP/1.1", close = false, keep_alive = false;
    if (!v11 && version != "HTTP/1.0") return bad;

    for (auto at = line_end; at < end;) {
        auto next = input.find("\r\n", at + 2);
        auto field = input.substr(at + 2, next - at - 2);
        auto colon = field.find(':');
        if (colon == field.npos || !detail::is_token(field.substr(0, colon))) return bad;
        auto name = field.substr(0, colon), value = detail::trimmed(field.substr(colon + 1));
        if (!detail::is_text(value) || detail::same_word(name, "transfer-encoding")) return bad;
        if (detail::same_word(name, "content-length") && value != "0") return bad;
        if (detail::same_word(name, "connection"))
            for (std::size_t from = 0; from <= value.size();) {
                auto comma = value.find(',', from);
                auto word = detail::trimmed(value.substr(from, comma - from));
                close |= detail::same_word(word, "close"), keep_alive |= detail::same_word(word, "keep-alive");
                from = comma == value.npos ? value.size() + 1 : comma + 1;
            }
        at = next;
    }
    return {Request::good, end + 4, !close && (v11 || keep_alive)};
}

// A server's answer, as far as a client needs it.
struct Answer {
    enum { incomplete, good, wrong_status, malformed } state = incomplete;
    std::string_view body; // of a good one
};

// Parses one answer with a Content-Length at the start of `input`.
inline Answer parse_answer(std::string_view input) {
    static constexpr std::string_view version = "HTTP/1.1 ", ok = "200 ";
    if (input.substr(0, version.size()) != version.substr(0, input.size())) return {Answer::malformed, {}};
    auto end = input.find("\r\n\r\n");
    if (end == input.npos) return {input.size() < buffer ? Answer::incomplete : Answer::malformed, {}};
    if (input.substr(version.size(), ok.size()) != ok) return {Answer::wrong_status, {}};
    for (auto at = input.find("\r\n"); at < end;) {
        auto next = input.find("\r\n", at + 2);
        auto field = input.substr(at + 2, next - at - 2);
        auto colon = std::min(field.find(':'), field.size());
        if (detail::same_word(field.substr(0, colon), "content-length")) {
            std::size_t length = 0;
            for (char digit : detail::trimmed(field.substr(colon + 1))) {
                if (digit < '0' || digit > '9' || length > longest_message) return {Answer::malformed, {}};
                length = 10 * length + std::size_t(digit - '0');
            }
            auto body = input.substr(end + 4);
            return body.size() < length ? Answer{} : Answer{Answer::good, body.substr(0, length)};
        }
        at = next;
    }
    return {Answer::malformed, {}};
}

} // namespace http

} // namespace linerate
