// The part that one file of a program compiles: the spec from JSON, the events to JSON, start().
#pragma once

#include "result.hpp"

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace linerate {
namespace detail {

// One type for reading and writing: each one more takes seconds to compile.
using Json = nlohmann::ordered_json;

// The contract's names.
inline const std::vector<std::string> spec_fields = {
    "contract", "role", "layer", "workload", "listen", "connect", "sources", "connections", "threads", "operations", "bytes",
    "duration_ns", "timeout_ns", "size", "path", "expect", "rate", "arrival", "seed", "sample_ns", "request", "tls", "options"};
inline const std::vector<std::string> option_names = {
    "direction", "transfers", "shape", "runtime", "mode", "mtu", "window", "interval_us", "nodelay", "resend", "nc", "tun",
    "buffer", "search", "ends"};

// Levenshtein distance.
inline std::size_t distance(const std::string& a, const std::string& b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        auto diagonal = std::exchange(row[0], i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            auto replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row.back();
}

// Refuses a name that is not among `known`: with the nearest one if at most a third of its letters differ,
// else with all.
inline void need_known(const std::string& prefix, const std::string& name, const std::vector<std::string>& known) {
    std::string nearest, list;
    std::size_t least = SIZE_MAX;
    for (const auto& each : known) {
        auto edits = distance(name, each);
        if (edits == 0) return;
        if (edits <= std::max({name.size(), each.size(), std::size_t(3)}) / 3 && edits < least) least = edits, nearest = each;
        list += (list.empty() ? "" : ", ") + each;
    }
    auto hint = nearest.empty() ? "known: " + list : "nearest: \"" + nearest + "\"";
    throw BadSpec("\"" + prefix + name + "\" is not known; " + hint);
}

inline std::uint64_t number(const Json& spec, const char* field, std::uint64_t otherwise) {
    auto found = spec.find(field);
    if (found == spec.end()) return otherwise;
    if (!found->is_number_unsigned()) throw BadSpec(std::string("\"") + field + "\" must be a whole number, not negative");
    return found->get<std::uint64_t>();
}

// The same for counts of connections and threads.
inline std::uint32_t count(const Json& spec, const char* field) {
    std::uint64_t n = number(spec, field, 1);
    if (n < 1 || n > 1'000'000) throw BadSpec(std::string("\"") + field + "\" must be from 1 to 1000000");
    return std::uint32_t(n);
}

// `ip:port`, with an IPv6 address in brackets.
inline Address address(const Json& spec, const char* field) {
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

inline Spec parse_spec(const char* text, const Program& program) {
    try {
        auto json = Json::parse(text);
        if (!json.is_object()) throw BadSpec("the spec is not a JSON object");
        if (number(json, "contract", 0) != 3) throw BadSpec("\"contract\" must be 3");
        for (const auto& field : json.items()) need_known("", field.key(), spec_fields);
        if (json.contains("rate")) throw Unsupported("\"rate\": no open loop");
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
        if (size > 1u << 30) throw BadSpec("\"size\" must be at most 1073741824 bytes");
        spec.size = std::size_t(size);
        spec.options = json.value("options", spec.options);
        auto known = option_names;
        known.insert(known.end(), program.options.begin(), program.options.end());
        for (const auto& option : spec.options) need_known("options.", option.first, known);
        auto tls = json.value("tls", Json::object());
        auto pem = [&tls](const char* field) { return tls.value(field, std::string()); };
        spec.tls = {pem("certificate"), pem("key"), pem("authority"), pem("name")};
        return spec;
    } catch (const Json::exception& e) {
        throw BadSpec(std::string("") + e.what());
    }
}

inline void emit(const Json& event) {
    std::string line = event.dump() + "\n";
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
}

inline void emit_describe(const Program& program) {
    Json event = {{"event", "describe"}, {"name", program.name}, {"version", program.version}};
    auto add = [&event](const char* list, const std::string& word) {
        auto& words = event[list];
        for (const auto& known : words)
            if (known == word) return;
        words.push_back(word);
    };
    for (const auto& each : program.abilities)
        add(each.role == one_loop ? "ends" : "roles", each.role), add("layers", each.layer), add("workloads", each.workload);
    emit(event);
}

inline Json counts(const Histogram& histogram) {
    auto pairs = Json::array();
    histogram.each([&pairs](std::uint64_t value, std::uint64_t count) { pairs.push_back({value, count}); });
    std::uint64_t min = Histogram::lowest_equivalent(pairs.front()[0]), max = pairs.back()[0];
    return {{"pairs", std::move(pairs)}, {"min", min}, {"max", max}};
}

} // namespace detail

int start(int argc, char** argv, const Program& program) {
    int status = 1;
    try {
        if (argc != 2) throw BadSpec("expected one argument, the spec as JSON (sdk/CONTRACT.md)");
        Spec spec = detail::parse_spec(argv[1], program);
        if (spec.role == "describe") return detail::emit_describe(program), 0;
        auto ends = spec.option("ends");
        need(ends.empty() || ends == one_loop, "\"options.ends\" must be one-loop");
        auto role = ends.empty() ? spec.role : spec.role == "client" ? ends : spec.role + " in one loop";
        const Ability* found = nullptr;
        for (const auto& each : program.abilities)
            if (!found && role == each.role && spec.layer == each.layer && spec.workload == each.workload) found = &each;
        if (!found) throw Unsupported("role " + role + ", layer " + spec.layer + ", workload " + spec.workload);
        if (spec.is_server()) {
            need(!spec.listen.ip.empty(), "\"listen\" is missing");
            // Every line is flushed when it is printed, so nothing is lost.
            std::signal(SIGTERM, [](int) { _exit(0); });
        } else if (spec.layer != "none" && ends.empty()) {
            need(!spec.connect.ip.empty(), "\"connect\" is missing");
        }
        std::signal(SIGPIPE, SIG_IGN);
        found->run(spec);
        return 0;
    } catch (const Unsupported& e) {
        std::fprintf(stderr, "%s: not supported: %s\n", program.name, e.what()), status = 127;
    } catch (const BadSpec& e) {
        std::fprintf(stderr, "%s: bad spec: %s\n", program.name, e.what()), status = 2;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s: %s\n", program.name, e.what());
    }
    return status;
}

void emit_ready(const std::string& ip, std::uint16_t port) {
    bool v6 = ip.find(':') != ip.npos;
    detail::emit({{"event", "ready"}, {"address", (v6 ? "[" + ip + "]" : ip) + ":" + std::to_string(port)}});
}

void emit_done(const Result& sum, std::uint64_t start_ns, std::uint64_t cpu_ns, const std::string& tls) {
    auto errors = detail::Json::object();
    for (std::size_t i = 0; i < kind_names.size(); ++i)
        if (sum.errors[i] != 0) errors[kind_names[i]] = sum.errors[i];
    detail::Json event = {{"event", "done"}, {"operations", sum.operations}, {"bytes", sum.bytes},
        {"start_ns", start_ns}, {"end_ns", sum.end_ns}, {"errors", errors}, {"cpu_ns", cpu_ns}, {"verified", sum.verified}};
    if (sum.in_flight != 0) event["in_flight"] = sum.in_flight;
    if (sum.datagrams)
        event["datagrams"] = {{"sent", sum.datagrams->sent}, {"received", sum.datagrams->received}, {"lost", sum.datagrams->lost},
            {"reordered", sum.datagrams->reordered}, {"duplicates", sum.datagrams->duplicates}, {"damaged", sum.datagrams->damaged}};
    if (!sum.latency.empty()) event["latency"] = detail::counts(sum.latency);
    if (!sum.connect.empty()) event["connect"] = detail::counts(sum.connect);
    if (!tls.empty()) event["tls"] = tls;
    detail::emit(event);
}

void Result::merge(const Result& other) {
    operations += other.operations, bytes += other.bytes, verified += other.verified, in_flight += other.in_flight;
    end_ns = std::max(end_ns, other.end_ns), flow_ns = std::max(flow_ns, other.flow_ns);
    for (std::size_t i = 0; i < errors.size(); ++i) errors[i] += other.errors[i];
    if (other.datagrams) {
        if (!datagrams) datagrams.emplace();
        auto& d = *datagrams;
        const auto& o = *other.datagrams;
        d.sent += o.sent, d.received += o.received, d.lost += o.lost;
        d.reordered += o.reordered, d.duplicates += o.duplicates, d.damaged += o.damaged;
    }
    latency.merge(other.latency);
    connect.merge(other.connect);
}

} // namespace linerate
