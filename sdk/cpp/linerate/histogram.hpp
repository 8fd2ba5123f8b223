// Latencies, as `done` contains them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace linerate {

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
    // The lowest value in the bucket of `value`.
    static std::uint64_t lowest_equivalent(std::uint64_t value) { return value >> shift(value) << shift(value); }

private:
    static constexpr std::uint64_t highest = 3'600'000'000'000;
    static constexpr std::size_t half = 1'024;
    static constexpr std::size_t slots = 33 * half; // an hour is below 2^42
    struct Free { void operator()(std::uint64_t* p) const { std::free(p); } };
    // calloc(3): pages without values cost nothing, so every connection can have its own histogram.
    std::unique_ptr<std::uint64_t[], Free> counts_;

    static unsigned shift(std::uint64_t value) { return unsigned(53 - __builtin_clzll(value | 2'047)); }
    static std::size_t slot(std::uint64_t value) { return shift(value) * half + std::size_t(value >> shift(value)); }
    static std::uint64_t highest_of(std::size_t slot) {
        std::size_t s = slot < 2 * half ? 0 : slot / half - 1;
        return ((std::uint64_t(slot - s * half) + 1) << s) - 1;
    }
};

} // namespace linerate
