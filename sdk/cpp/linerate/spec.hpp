// The spec, the abilities of a program, its exit statuses, and the checks of a spec that all programs share.
#pragma once

#include "content.hpp"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace linerate {

struct Address {
    std::string ip;
    std::uint16_t port = 0;
};

// PEM texts: `certificate` and `key` of a server; the `authority` that a client trusts, and the `name` that it expects.
struct Tls {
    std::string certificate, key, authority, name;
};

struct Spec {
    std::string role, layer, workload;
    Address listen, connect;             // an empty ip: absent
    std::vector<std::string> sources;
    std::uint32_t connections = 1, threads = 1;
    std::uint64_t operations = UINT64_MAX; // UINT64_MAX: no limit
    std::uint64_t bytes = 0;
    std::uint64_t duration_ns = UINT64_MAX;
    std::uint64_t timeout_ns = 0;
    std::size_t size = 0;
    Tls tls;
    std::map<std::string, std::string> options;

    bool is_server() const { return role == "server"; }
    std::string option(const std::string& name) const {
        auto found = options.find(name);
        return found == options.end() ? std::string() : found->second;
    }
};

// Ends the program with exit status 127. Thrown before anything is opened.
struct Unsupported : std::runtime_error {
    using runtime_error::runtime_error;
};
// Ends the program with exit status 2.
struct BadSpec : std::runtime_error {
    using runtime_error::runtime_error;
};

// The role of a client that is client and server in one event loop: `options.ends`.
inline constexpr std::string_view one_loop = "one-loop";

// One ability of a program. `run` returns when a client is done, and never in a server. A role is `client`, `server` or
// `one_loop`.
struct Ability {
    const char *role, *layer, *workload;
    void (*run)(const Spec&);
};
using Abilities = std::vector<Ability>;

inline Abilities operator+(Abilities all, const Abilities& more) {
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

struct Program {
    const char* name;
    std::string version; // of the library under test, from the library itself
    Abilities abilities;
    std::vector<std::string> options = {}; // names beyond those of the contract
};

// The whole of main(): reads the spec, answers `describe`, refuses specs outside the abilities, and runs the others.
int start(int argc, char** argv, const Program& program);

// Prints that a server accepts connections.
void emit_ready(const std::string& ip, std::uint16_t port);

inline void need(bool good, const char* what) {
    if (!good) throw BadSpec(what);
}

// A number among the options.
inline std::uint64_t number_option(const Spec& spec, const char* name, std::uint64_t otherwise, std::uint64_t low,
                                   std::uint64_t high) {
    auto text = spec.option(name);
    if (text.empty()) return otherwise;
    char* rest = nullptr;
    auto value = std::strtoull(text.c_str(), &rest, 10);
    if (*rest == '\0' && text[0] != '-' && value >= low && value <= high) return value;
    throw BadSpec("\"options." + std::string(name) + "\" must be " + std::to_string(low) + " to " + std::to_string(high) +
                  ", not " + text);
}

inline void need_limit(const Spec& spec) {
    bool limited = spec.operations != UINT64_MAX || spec.duration_ns != UINT64_MAX;
    need(limited, "\"operations\" or \"duration_ns\" is missing");
}

// The messages of `rr`, `crr` and `fanout`. Above 64 KiB a program that sends the whole message before it reads could
// deadlock with an echo server, each with full socket buffers.
inline void need_message(const Spec& spec) {
    need(spec.size >= 1 && spec.size <= echo_buffer, "\"size\" must be from 1 to 65536 bytes");
    need_limit(spec);
}

// The shapes of `dispatch`. True if several threads share its counter.
inline bool need_shape(const Spec& spec) {
    auto shape = spec.option("shape");
    bool shared = shape == "threads" || shape == "run" || shape == "concurrent";
    need(shared || shape == "single" || shape == "interleaved",
         "\"options.shape\" must be single, threads, run, interleaved or concurrent");
    need(spec.operations != UINT64_MAX, "\"operations\" is missing");
    return shared;
}

// The directions of a `stream`.
struct Direction {
    bool client_writes, client_reads; // `both`: both
    explicit Direction(const Spec& spec) {
        auto name = spec.option("direction");
        need(name == "client-writes" || name == "client-reads" || name == "both",
             "\"options.direction\" must be client-writes, client-reads or both");
        need(spec.size >= 1, "\"size\" must be at least 1 byte");
        client_writes = name != "client-reads", client_reads = name != "client-writes";
    }
    bool is_both() const { return client_writes && client_reads; }
};

// The only direction of `stream` over datagrams.
inline void need_client_writes(const Spec& spec) {
    if (!Direction(spec).client_reads) return;
    throw Unsupported("over " + spec.layer + " any \"options.direction\" but client-writes");
}

// The stop condition of a client's `stream`.
inline void need_end(const Spec& spec) {
    need(spec.bytes > 0 || spec.duration_ns != UINT64_MAX, "\"bytes\" or \"duration_ns\" is missing");
}

} // namespace linerate
