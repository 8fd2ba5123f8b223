// What one connection counts; it shares nothing, and is merged when the window is closed.
// And the window: which operations may still begin.
#pragma once

#include "datagram.hpp"
#include "histogram.hpp"
#include "task.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <optional>

namespace linerate {

inline std::uint64_t read_clock(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return std::uint64_t(t.tv_sec) * 1'000'000'000u + std::uint64_t(t.tv_nsec);
}
inline std::uint64_t now_ns() { return read_clock(CLOCK_MONOTONIC); }
inline std::uint64_t cpu_ns() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

// Why an operation failed; the contract's words are in `kind_names`.
enum class Kind {
    connect_refused, connect_timeout, connect_failed, tls_failed, reset, empty_reply, truncated, malformed, wrong_status,
    wrong_length, wrong_content, timeout, address_exhausted, descriptor_exhausted, failed, count
};
inline constexpr std::array<const char*, std::size_t(Kind::count)> kind_names = {
    "connect_refused", "connect_timeout", "connect_failed", "tls_failed", "reset", "empty_reply", "truncated", "malformed",
    "wrong_status", "wrong_length", "wrong_content", "timeout", "address_exhausted", "descriptor_exhausted", "failed"};

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

// What one connection, or one slot of work, counted.
struct Account {
    std::uint64_t operations = 0, bytes = 0, verified = 0, end_ns = 0;
    std::array<std::uint64_t, std::size_t(Kind::count)> errors{};
    Histogram latency, connect;
    std::optional<Datagrams> datagrams;

    void succeed(std::uint64_t now, std::uint64_t payload) { ++operations, ++verified, bytes += payload, end_ns = now; }
    void fail(Kind kind, std::uint64_t now) { ++errors[std::size_t(kind)], end_ns = now; }
    // One direction of a connection's `stream` is over; its receiver, at either end, found `good` bytes of `wanted` good.
    void add_stream(std::uint64_t wanted, std::uint64_t good, std::uint64_t now) {
        bytes += good, verified += good, end_ns = now;
        if (good != wanted) fail(Kind::wrong_content, now);
    }
    // A flow of datagrams of `size` bytes is over: what was sent, and what the server tells of it.
    void add_flow(std::uint64_t sent, const datagram::Report& report, std::size_t size) {
        if (!datagrams) datagrams.emplace();
        auto& d = *datagrams;
        d.sent += sent, d.received += report.received, d.lost += sent - std::min(sent, report.received);
        d.reordered += report.reordered, d.duplicates += report.duplicates, d.damaged += report.damaged;
        bytes += report.bytes, verified += report.received * (size - datagram::header);
        if (report.last_ns > end_ns) end_ns = report.last_ns;
    }
    void merge(const Account& other);
};

// Prints the `done` event; `tls` is empty where there was none.
void emit_done(const Account& sum, std::uint64_t start_ns, std::uint64_t cpu_ns, const std::string& tls);

// The window of a client's trial: opened once all connections stand, asked by each before every operation.
class Window {
public:
    explicit Window(const Spec& spec)
        : budget_(spec.operations), bytes_(spec.bytes), duration_(spec.duration_ns), piece_(spec.workload == "stream" ? spec.size : 0) {}
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
    bool is_over(std::uint64_t now) const { return now >= end_; }

    // One direction of a `stream` ends with its bytes, or by time. `moved`: bytes of it so far.
    bool stream_is_over(std::uint64_t moved) const { return bytes_ == 0 ? is_over(now_ns()) : moved >= bytes_; }
    std::size_t next_piece(std::uint64_t moved) const { return std::size_t(std::min(piece_, stream_bytes() - moved)); }
    std::uint64_t stream_bytes() const { return bytes_ == 0 ? UINT64_MAX : bytes_; }
    std::uint64_t wanted(std::uint64_t moved) const { return bytes_ == 0 ? moved : bytes_; }
    // What TLS the connections have agreed on: version, cipher, library with its version.
    void tell_tls(std::string tls) { tls_ = std::move(tls); }
    // Closes the window and prints `done`; `accounts` are pointers or smart pointers to things with an `account`.
    template <class Accounts> void done(const Accounts& accounts) {
        std::uint64_t used = cpu_ns() - cpu_;
        Account sum;
        for (const auto& each : accounts) sum.merge(each->account);
        if (sum.end_ns < start_) sum.end_ns = start_;
        // An operation of a `stream` is one write, and it is counted where it arrives.
        if (sum.operations == 0 && piece_ != 0) sum.operations = (sum.bytes + piece_ - 1) / piece_;
        emit_done(sum, start_, used, tls_);
    }
    // The same for `dispatch`, which has one counter that its handlers have counted up.
    void done(std::uint64_t ran, std::uint64_t asked) {
        std::uint64_t used = cpu_ns() - cpu_;
        if (ran != asked)
            throw std::runtime_error(std::to_string(ran) + " handlers ran, " + std::to_string(asked) + " were posted");
        Account sum;
        sum.operations = sum.verified = ran, sum.end_ns = now_ns();
        emit_done(sum, start_, used, tls_);
    }

private:
    std::atomic<std::uint64_t> budget_;
    std::string tls_;
    std::uint64_t bytes_, duration_, piece_, start_ = 0, end_ = 0, cpu_ = 0;
};

} // namespace linerate
