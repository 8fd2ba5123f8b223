// What is asked and what a program can do; main() and the exit statuses; mistakes of a spec that all find the same way.
#pragma once

#include "content.hpp"

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace linerate {

struct Address {
    std::string ip;
    std::uint16_t port = 0;
};

// PEM texts: a server has certificate and key, a client the authority that it trusts and the name that it expects.
struct Tls {
    std::string certificate, key, authority, name;
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
    Tls tls;
    std::map<std::string, std::string> options;

    bool counted() const { return layer == "tcp" && workload == "stream" && options.count("transfers") != 0; }
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
    bool counted = false; // a `stream` on tcp in its counted form, which "options.transfers" asks for
};

struct Program {
    const char* name;
    std::string version; // of the library under test, from the library itself
    std::vector<Ability> abilities; // of two for the same thing the first one counts
};

// The whole of main(): reads the spec, answers `describe`, refuses what is not among the abilities, runs the rest.
int start(int argc, char** argv, const Program& program);

// A server accepts connections.
void emit_ready(const std::string& ip, std::uint16_t port);

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
    need(shared || shape == "single" || shape == "interleaved",
         "\"options.shape\" must be single, threads, interleaved or concurrent");
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
    // A client's: how it ends.
    void need_end(const Spec& spec) const {
        need(spec.bytes > 0 || spec.duration_ns != UINT64_MAX, "\"bytes\" or \"duration_ns\" is missing");
        if (spec.bytes == 0 && client_writes && client_reads) throw Unsupported("both directions by time");
    }
};

} // namespace linerate
