// The workloads of the suite `runtime`: each system defines these functions, and its main() lists them.
#pragma once

#include "../linerate.hpp"

void serve_http(const linerate::Spec&);
void serve_tcp(const linerate::Spec&);
void drive_tcp(const linerate::Spec&);
void serve_datagrams(const linerate::Spec&); // UDP, where the system has it
void drive_datagrams(const linerate::Spec&);
void dispatch(const linerate::Spec&); // only where handlers can be posted to a queue
void loop_tcp(const linerate::Spec&); // client and server in one loop
void loop_http(const linerate::Spec&);

namespace linerate {

// All but `dispatch`, UDP, and both ends in one loop.
inline Abilities event_loop() {
    Abilities all = {
        {"server", "http", "rr", serve_http},
        {"server", "http", "crr", serve_http},
    };
    for (auto workload : {"rr", "crr", "fanout", "stream"}) {
        all.push_back({"server", "tcp", workload, serve_tcp});
        all.push_back({"client", "tcp", workload, drive_tcp});
    }
    return all;
}

inline Abilities both_in_one_loop() {
    return {
        {one_loop.data(), "tcp", "rr", loop_tcp},
        {one_loop.data(), "tcp", "stream", loop_tcp},
        {one_loop.data(), "http", "rr", loop_http},
    };
}

inline Abilities datagram_stream() {
    return {{"server", "udp", "stream", serve_datagrams}, {"client", "udp", "stream", drive_datagrams}};
}

} // namespace linerate
