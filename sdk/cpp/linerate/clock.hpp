// Clocks, in nanoseconds.
#pragma once

#include <cstdint>
#include <ctime>

namespace linerate {

inline std::uint64_t read_clock(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return std::uint64_t(t.tv_sec) * 1'000'000'000u + std::uint64_t(t.tv_nsec);
}
inline std::uint64_t now_ns() { return read_clock(CLOCK_MONOTONIC); }
inline std::uint64_t cpu_ns() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

} // namespace linerate
