// What a C++ program needs to become a system of linerate (sdk/CONTRACT.md, contract 1). C++17 or later, Linux.
//
//   argv[1] -> parse -> Spec -> your event loop -> Account per connection -> done() -> JSON lines on stdout
//
// One source file defines LINERATE_IMPLEMENTATION before it includes this header, and needs nlohmann/json
// (Debian: nlohmann-json3-dev); no other file pays for compiling a JSON parser. The parts, in order:
//   Spec, Program, start     what is asked, what the program can do, main() and the exit statuses
//   Content                  the bytes that every server sends and every client checks
//   Kind, Histogram, Account what one connection counts; it shares nothing, and is merged when the window is closed
//   Window                   which operations may still begin
//   http::parse              one HTTP/1.1 request parser, so that the event loop is what differs between systems
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace linerate {

// ---------------------------------------------------------------------------------------------- the task

struct Address {
    std::string ip;
    std::uint16_t port = 0;
};

struct Spec {
    std::string role, layer, workload;
    Address listen, connect;             // an empty ip: absent
    std::vector<std::string> sources;
    std::uint32_t connections = 1, threads = 1;
    std::uint64_t operations = UINT64_MAX; // UINT64_MAX: as many as the time allows
    std::uint64_t bytes = 0;
    std::uint64_t duration_ns = UINT64_MAX;
    std::uint64_t timeout_ns = 0;
    std::size_t size = 0;
    std::map<std::string, std::string> options;

    std::string option(const std::string& name) const {
        auto found = options.find(name);
        return found == options.end() ? std::string() : found->second;
    }
};

// Ends the program with exit status 127: thrown before anything is opened.
struct Unsupported : std::runtime_error {
    using runtime_error::runtime_error;
};
// Ends the program with exit status 2.
struct BadSpec : std::runtime_error {
    using runtime_error::runtime_error;
};

// One thing that a program can do. `run` returns when a client is done; a server's never does.
struct Ability {
    const char *role, *layer, *workload;
    void (*run)(const Spec&);
};

struct Program {
    const char* name;
    std::string version; // of the library under test, from the library itself
    std::vector<Ability> abilities;
};

// The whole of main(): reads the spec, answers `describe`, refuses what is not among the abilities, runs the rest.
int start(int argc, char** argv, const Program& program);

// A server accepts connections.
void emit_ready(const std::string& ip, std::uint16_t port);

// ---------------------------------------------------------------------------------------------- clocks

inline std::uint64_t read_clock(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return std::uint64_t(t.tv_sec) * 1'000'000'000u + std::uint64_t(t.tv_nsec);
}
inline std::uint64_t now_ns() { return read_clock(CLOCK_MONOTONIC); }
inline std::uint64_t cpu_ns() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

// ---------------------------------------------------------------------------------------------- content

// Bytes that an echo server reads at once, the same for every system: what a 64 KB buffer of the stream tables needs.
inline constexpr std::size_t echo_buffer = 65'536;
// Backlog of every listener, as systems/README.md says.
inline constexpr int backlog = 511;

// The first `size` bytes of the content (Steele, Lea, Flood: splitmix64, 2014).
inline std::string page(std::size_t size) {
    static constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    std::string bytes(size, '\0');
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < size; ++i) {
        if (i % 8 == 0) {
            word = (i / 8 + 1) * 0x9e3779b97f4a7c15u;
            word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
            word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
            word ^= word >> 31;
        }
        bytes[i] = alphabet[(word >> (8 * (i % 8))) & 63];
    }
    return bytes;
}

// CRC-32 (ISO-HDLC, as in zlib), for clients of pages.
inline std::uint32_t crc32(std::string_view bytes) {
    std::uint32_t crc = ~0u;
    for (unsigned char byte : bytes) {
        crc ^= byte;
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
    }
    return ~crc;
}

// An endless stream of content that repeats after 65,536 bytes; a piece of up to `longest` bytes is contiguous.
class Content {
public:
    static constexpr std::size_t period = 65'536;

    explicit Content(std::size_t longest) : bytes_(page(period)), longest_(longest) {
        while (bytes_.size() < period + longest) bytes_.append(bytes_, 0, period);
    }
    const char* at(std::uint64_t position) const { return bytes_.data() + position % period; }

    // How many of the bytes received at `position` are the right ones.
    std::uint64_t good(std::uint64_t position, const char* received, std::size_t length) const {
        if (length <= longest_ && std::memcmp(at(position), received, length) == 0) return length;
        std::uint64_t equal = 0;
        for (std::size_t i = 0; i < length; ++i) equal += *at(position + i) == received[i];
        return equal;
    }

private:
    std::string bytes_;
    std::size_t longest_;
};

// Numbers on the wire of a `stream`: 8 bytes little-endian.
inline std::array<char, 8> to_wire(std::uint64_t number) {
    std::array<char, 8> bytes;
    for (char& byte : bytes) byte = char(number), number >>= 8;
    return bytes;
}
inline std::uint64_t from_wire(const std::array<char, 8>& bytes) {
    std::uint64_t number = 0;
    for (int i = 8; i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[std::size_t(i)]);
    return number;
}

// ---------------------------------------------------------------------------------------------- accounts

// Why an operation failed; the contract's words are in `kind_names`.
enum class Kind {
    connect_refused, connect_timeout, connect_failed, reset, empty_reply, truncated, malformed, wrong_status,
    wrong_length, wrong_content, timeout, address_exhausted, descriptor_exhausted, failed, count
};
inline constexpr std::array<const char*, std::size_t(Kind::count)> kind_names = {
    "connect_refused", "connect_timeout", "connect_failed", "reset", "empty_reply", "truncated", "malformed", "wrong_status",
    "wrong_length", "wrong_content", "timeout", "address_exhausted", "descriptor_exhausted", "failed"};

// The kind of an errno before a connection stood.
inline Kind connect_kind(int error) {
    switch (error) {
        case ECONNREFUSED: return Kind::connect_refused;
        case ETIMEDOUT: return Kind::connect_timeout;
        case EADDRNOTAVAIL: case EADDRINUSE: return Kind::address_exhausted;
        case EMFILE: case ENFILE: return Kind::descriptor_exhausted;
        default: return Kind::connect_failed;
    }
}
// The kind of a failure of a connection that stood; `eof`: the peer closed, after `received` bytes of the answer.
inline Kind transfer_kind(int error, bool eof, std::size_t received) {
    if (eof) return received == 0 ? Kind::empty_reply : Kind::truncated;
    return error == ECONNRESET || error == EPIPE ? Kind::reset : Kind::failed;
}

// HDR histogram (Gil Tene) of nanoseconds with three significant digits, the buckets of HdrHistogram: exact up to
// 2,047, then 1,024 buckets for each power of two. Values above an hour count as an hour.
class Histogram {
public:
    void record(std::uint64_t value) {
        if (!counts_) counts_.reset(static_cast<std::uint64_t*>(std::calloc(slots, sizeof(std::uint64_t))));
        if (!counts_) throw std::bad_alloc();
        ++counts_[slot(value < highest ? value : highest)];
    }
    void merge(const Histogram& other) {
        other.each([this](std::uint64_t value, std::uint64_t count) {
            record(value);
            counts_[slot(value)] += count - 1;
        });
    }
    bool empty() const { return !counts_; }
    // Calls f(highest value of the bucket, count) for every bucket in use, ascending.
    template <class F> void each(F f) const {
        if (!counts_) return;
        for (std::size_t i = 0; i < slots; ++i)
            if (counts_[i] != 0) f(highest_of(i), counts_[i]);
    }
    // The lowest value that falls into the bucket of `value`.
    static std::uint64_t lowest_equivalent(std::uint64_t value) { return value >> shift(value) << shift(value); }

private:
    static constexpr std::uint64_t highest = 3'600'000'000'000;
    static constexpr std::size_t half = 1'024;
    static constexpr std::size_t slots = 33 * half; // an hour is below 2^42
    struct Free { void operator()(std::uint64_t* p) const { std::free(p); } };
    // calloc(3): pages that no value falls into cost nothing, so that every connection can have its own histogram.
    std::unique_ptr<std::uint64_t[], Free> counts_;

    static unsigned shift(std::uint64_t value) { return unsigned(53 - __builtin_clzll(value | 2'047)); }
    static std::size_t slot(std::uint64_t value) { return shift(value) * half + std::size_t(value >> shift(value)); }
    static std::uint64_t highest_of(std::size_t slot) {
        std::size_t s = slot < 2 * half ? 0 : slot / half - 1;
        return ((std::uint64_t(slot - s * half) + 1) << s) - 1;
    }
};

// What one connection, or one slot of work, counted.
struct Account {
    std::uint64_t operations = 0, bytes = 0, verified = 0, end_ns = 0;
    std::array<std::uint64_t, std::size_t(Kind::count)> errors{};
    Histogram latency, connect;

    void succeed(std::uint64_t now, std::uint64_t payload) { ++operations, ++verified, bytes += payload, end_ns = now; }
    void fail(Kind kind, std::uint64_t now) { ++errors[std::size_t(kind)], end_ns = now; }
    // One direction of a connection's `stream` is over; its receiver, at either end, found `good` bytes good.
    void add_stream(const Spec& spec, std::uint64_t good, std::uint64_t now) {
        bytes += good, verified += good, end_ns = now;
        if (good != spec.bytes) fail(Kind::wrong_content, now);
    }
    void merge(const Account& other);
};

// Prints the `done` event.
void emit_done(const Account& sum, std::uint64_t start_ns, std::uint64_t cpu_ns);

// The window of a client's trial: opened once all connections stand, asked by each before every operation.
class Window {
public:
    explicit Window(const Spec& spec)
        : budget_(spec.operations), duration_(spec.duration_ns), piece_(spec.workload == "stream" ? spec.size : 0) {}
    void open() {
        cpu_ = cpu_ns(), start_ = now_ns();
        end_ = duration_ > UINT64_MAX - start_ ? UINT64_MAX : start_ + duration_;
    }
    // Takes one operation out of the budget; false if none is left, or no time.
    bool begin(std::uint64_t now) {
        if (now >= end_) return false;
        std::uint64_t left = budget_.load(std::memory_order_relaxed);
        while (left != 0 && !budget_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {}
        return left != 0;
    }
    std::uint64_t start() const { return start_; }
    // Closes the window and prints `done`; `accounts` are pointers or smart pointers to things with an `account`.
    template <class Accounts> void done(const Accounts& accounts) {
        std::uint64_t used = cpu_ns() - cpu_;
        Account sum;
        for (const auto& each : accounts) sum.merge(each->account);
        if (sum.end_ns < start_) sum.end_ns = start_;
        // An operation of a `stream` is one write, and it is counted where it arrives.
        if (piece_ != 0) sum.operations = (sum.bytes + piece_ - 1) / piece_;
        emit_done(sum, start_, used);
    }
    // The same for `dispatch`, which has one counter that its handlers have counted up.
    void done(std::uint64_t ran, std::uint64_t asked) {
        std::uint64_t used = cpu_ns() - cpu_;
        if (ran != asked) throw std::runtime_error(std::to_string(ran) + " handlers ran, " + std::to_string(asked) + " were posted");
        Account sum;
        sum.operations = sum.verified = ran, sum.end_ns = now_ns();
        emit_done(sum, start_, used);
    }

private:
    std::atomic<std::uint64_t> budget_;
    std::uint64_t duration_, piece_, start_ = 0, end_ = 0, cpu_ = 0;
};

// A mistake of the spec that every program finds the same way.
inline void need(bool there, const char* what) {
    if (!there) throw BadSpec(what);
}

// The messages of `rr`, `churn` and `fanout`. Above 64 KiB a program that sends all of it before it reads could wait
// for an echo server that waits for it, each with full socket buffers.
inline void need_message(const Spec& spec) {
    need(spec.size >= 1 && spec.size <= echo_buffer, "\"size\" must be from 1 to 65536 bytes");
    need(spec.operations != UINT64_MAX || spec.duration_ns != UINT64_MAX, "\"operations\" or \"duration_ns\" is missing");
}

// The shapes of `dispatch`; true if several threads share its counter.
inline bool need_shape(const Spec& spec) {
    auto shape = spec.option("shape");
    bool shared = shape == "threads" || shape == "concurrent";
    need(shared || shape == "single" || shape == "interleaved", "\"options.shape\" must be single, threads, interleaved or concurrent");
    need(spec.operations != UINT64_MAX, "\"operations\" is missing");
    return shared;
}

// The directions of a `stream`, and what each needs.
struct Direction {
    bool client_writes, client_reads; // `both`: both
    explicit Direction(const Spec& spec) {
        auto name = spec.option("direction");
        need(name == "client-writes" || name == "client-reads" || name == "both",
             "\"options.direction\" must be client-writes, client-reads or both");
        need(spec.size >= 1, "\"size\" must be at least 1 byte");
        client_writes = name != "client-reads", client_reads = name != "client-writes";
    }
};

// ---------------------------------------------------------------------------------------------- HTTP/1.1

namespace http {

// Input that a server reads at once, and the longest request head.
inline constexpr std::size_t buffer = 16'384;
inline constexpr std::string_view bad_request = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

struct Request {
    enum { incomplete, good, bad } state = incomplete;
    std::size_t length = 0; // of the head, and so of the request: a GET has no body
    bool keep = true;       // the connection stays open after the answer
};

// Looks at the start of `input` for one GET request (RFC 9112). Whatever else it is, is bad and ends the connection.
Request parse(std::string_view input);

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

} // namespace http
} // namespace linerate

#ifdef LINERATE_IMPLEMENTATION
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace linerate {
namespace detail {

inline std::uint64_t number(const nlohmann::json& spec, const char* field, std::uint64_t otherwise) {
    auto found = spec.find(field);
    if (found == spec.end()) return otherwise;
    if (!found->is_number_unsigned()) throw BadSpec(std::string("\"") + field + "\" must be a whole number, not negative");
    return found->get<std::uint64_t>();
}

// As `number`, for counts of connections and threads: at least 1, and no more than could be meant.
inline std::uint32_t count(const nlohmann::json& spec, const char* field) {
    std::uint64_t n = number(spec, field, 1);
    if (n < 1 || n > 1'000'000) throw BadSpec(std::string("\"") + field + "\" must be from 1 to 1000000");
    return std::uint32_t(n);
}

// `ip:port`, with an IPv6 address in brackets.
inline Address address(const nlohmann::json& spec, const char* field) {
    auto text = spec.value(field, std::string());
    if (text.empty()) return {};
    auto colon = text.rfind(':');
    char* end = nullptr;
    auto port = colon == text.npos ? 65'536 : std::strtoul(text.c_str() + colon + 1, &end, 10);
    if (port > 65'535 || *end != '\0') throw BadSpec(std::string("\"") + field + "\" must be ip:port, not " + text);
    auto ip = text.substr(0, colon);
    if (ip.size() > 2 && ip.front() == '[' && ip.back() == ']') ip = ip.substr(1, ip.size() - 2);
    return {ip, std::uint16_t(port)};
}

inline Spec parse_spec(const char* text) {
    try {
        auto json = nlohmann::json::parse(text);
        if (!json.is_object()) throw BadSpec("the spec is not a JSON object");
        if (json.contains("rate")) throw Unsupported("\"rate\": there is no open loop here");
        if (number(json, "contract", 0) != 1) throw BadSpec("the spec speaks another contract, this program 1");
        Spec spec;
        spec.role = json.at("role").get<std::string>();
        spec.layer = json.at("layer").get<std::string>();
        spec.workload = json.at("workload").get<std::string>();
        spec.listen = address(json, "listen");
        spec.connect = address(json, "connect");
        spec.sources = json.value("sources", spec.sources);
        spec.connections = count(json, "connections");
        spec.threads = count(json, "threads");
        spec.operations = number(json, "operations", spec.operations);
        spec.bytes = number(json, "bytes", 0);
        spec.duration_ns = number(json, "duration_ns", spec.duration_ns);
        spec.timeout_ns = number(json, "timeout_ns", 10'000'000'000);
        std::uint64_t size = number(json, "size", 0);
        if (size > 1u << 30) throw BadSpec("\"size\" must be at most 1073741824 bytes: it is held in memory");
        spec.size = std::size_t(size);
        spec.options = json.value("options", spec.options);
        return spec;
    } catch (const nlohmann::json::exception& e) {
        throw BadSpec(std::string("the spec is not valid: ") + e.what());
    }
}

inline void emit(const nlohmann::ordered_json& event) {
    std::string line = event.dump() + "\n";
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
}

inline void emit_describe(const Program& program) {
    nlohmann::ordered_json event = {{"event", "describe"}, {"name", program.name}, {"version", program.version}};
    auto add = [&event](const char* list, const char* word) {
        auto& words = event[list];
        for (const auto& known : words)
            if (known == word) return;
        words.push_back(word);
    };
    for (const auto& each : program.abilities)
        add("roles", each.role), add("layers", each.layer), add("workloads", each.workload);
    emit(event);
}

inline nlohmann::ordered_json counts(const Histogram& histogram) {
    auto pairs = nlohmann::ordered_json::array();
    histogram.each([&pairs](std::uint64_t value, std::uint64_t count) { pairs.push_back({value, count}); });
    std::uint64_t min = Histogram::lowest_equivalent(pairs.front()[0]), max = pairs.back()[0];
    return {{"pairs", std::move(pairs)}, {"min", min}, {"max", max}};
}

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

// Letters of a field name (RFC 9110 section 5.6.2).
inline bool is_token(std::string_view name) {
    for (unsigned char c : name)
        if (c <= ' ' || c >= 127 || std::strchr("\"(),/:;<=>?@[\\]{}", c)) return false;
    return !name.empty();
}

// No control characters (RFC 9110 section 5.5); a tab is one of the spaces.
inline bool is_text(std::string_view value) {
    for (unsigned char c : value)
        if ((c < ' ' && c != '\t') || c == 127) return false;
    return true;
}

} // namespace detail

int start(int argc, char** argv, const Program& program) {
    int status = 1;
    try {
        if (argc != 2) throw BadSpec("expected one argument, the spec as JSON (sdk/CONTRACT.md)");
        Spec spec = detail::parse_spec(argv[1]);
        if (spec.role == "describe") return detail::emit_describe(program), 0;
        const Ability* found = nullptr;
        for (const auto& each : program.abilities)
            if (spec.role == each.role && spec.layer == each.layer && spec.workload == each.workload) found = &each;
        if (!found) throw Unsupported("role " + spec.role + ", layer " + spec.layer + ", workload " + spec.workload + " I do not support");
        if (spec.role == "server") {
            need(!spec.listen.ip.empty(), "\"listen\" is missing");
            // Every line is flushed as it is printed, so there is nothing to tidy up and no loop to wait for.
            std::signal(SIGTERM, [](int) { _exit(0); });
        } else if (spec.layer != std::string("none")) {
            need(!spec.connect.ip.empty(), "\"connect\" is missing");
        }
        std::signal(SIGPIPE, SIG_IGN);
        found->run(spec);
        return 0;
    } catch (const Unsupported& e) {
        std::fprintf(stderr, "%s: %s\n", program.name, e.what()), status = 127;
    } catch (const BadSpec& e) {
        std::fprintf(stderr, "%s: %s\n", program.name, e.what()), status = 2;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s: %s\n", program.name, e.what());
    }
    return status;
}

void emit_ready(const std::string& ip, std::uint16_t port) {
    bool v6 = ip.find(':') != ip.npos;
    detail::emit({{"event", "ready"}, {"address", (v6 ? "[" + ip + "]" : ip) + ":" + std::to_string(port)}});
}

void emit_done(const Account& sum, std::uint64_t start_ns, std::uint64_t cpu_ns) {
    auto errors = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < kind_names.size(); ++i)
        if (sum.errors[i] != 0) errors[kind_names[i]] = sum.errors[i];
    nlohmann::ordered_json event = {{"event", "done"}, {"operations", sum.operations}, {"bytes", sum.bytes},
        {"start_ns", start_ns}, {"end_ns", sum.end_ns}, {"errors", errors}, {"cpu_ns", cpu_ns}, {"verified", sum.verified}};
    if (!sum.latency.empty()) event["latency"] = detail::counts(sum.latency);
    if (!sum.connect.empty()) event["connect"] = detail::counts(sum.connect);
    detail::emit(event);
}

void Account::merge(const Account& other) {
    operations += other.operations, bytes += other.bytes, verified += other.verified;
    if (other.end_ns > end_ns) end_ns = other.end_ns;
    for (std::size_t i = 0; i < errors.size(); ++i) errors[i] += other.errors[i];
    latency.merge(other.latency);
    connect.merge(other.connect);
}

namespace http {

Request parse(std::string_view input) {
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

} // namespace http
} // namespace linerate
#endif
