// Checks of specs for the protocols of protocol.hpp, and the entries of a program that implements them.
#pragma once

#include "clients.hpp"

#include <algorithm>
#include <vector>

namespace linerate {

// The abilities of a program that has both ends of these workloads on a layer.
inline Abilities both_ends(const char* layer, std::vector<const char*> workloads, void (*serve)(const Spec&),
                           void (*drive)(const Spec&)) {
    Abilities all;
    for (auto workload : workloads) {
        all.push_back({"server", layer, workload, serve});
        all.push_back({"client", layer, workload, drive});
    }
    return all;
}

// Checks a spec of these protocols. `duplex`: the transport reads while it writes.
inline void need_protocol(const Spec& spec, bool duplex) {
    if (spec.workload != "stream") {
        if (!spec.is_server()) need_message(spec);
        return;
    }
    if (Direction(spec).is_both() && !duplex) throw Unsupported("a stream in both directions");
    need(spec.size <= longest_write, "\"size\" must be at most 1048576 bytes");
    if (spec.is_server()) return;
    need_end(spec);
    auto transfers = StreamClient::transfers(spec);
    if (spec.bytes > 0) return;
    if (spec.layer != "tcp" || Direction(spec).is_both()) throw Unsupported("a stream by time in both directions, or above TCP");
    need(transfers == 1, "\"options.transfers\" must be 1 for a stream by time");
}

// How many bytes a transport reads at once.
inline std::size_t read_size(const Spec& spec) {
    if (spec.layer == "http") return http::buffer;
    return spec.is_server() && spec.workload != "stream" ? echo_buffer : std::max<std::size_t>(spec.size, 8);
}

} // namespace linerate
