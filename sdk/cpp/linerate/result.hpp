// The counters of one connection, which are merged when the window closes, and the window itself.
#pragma once

#include "clock.hpp"
#include "datagram.hpp"
#include "histogram.hpp"
#include "spec.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <numeric>
#include <optional>

namespace linerate {

// Why an operation failed. `kind_names` has the contract's names.
enum class Kind {
    connect_refused, connect_timeout, connect_failed, tls_failed, reset, empty_reply, truncated, malformed, wrong_status,
    wrong_length, wrong_content, timeout, address_exhausted, descriptor_exhausted, failed, count
};
inline constexpr std::array<const char*, std::size_t(Kind::count)> kind_names = {
    "connect_refused", "connect_timeout", "connect_failed", "tls_failed", "reset", "empty_reply", "truncated", "malformed",
    "wrong_status", "wrong_length", "wrong_content", "timeout", "address_exhausted", "descriptor_exhausted", "failed"};

// The kind of an errno before the connection is established.
inline Kind connect_kind(int error) {
    switch (error) {
        case ECONNREFUSED: return Kind::connect_refused;
        case ETIMEDOUT: return Kind::connect_timeout;
        case EADDRNOTAVAIL: case EADDRINUSE: return Kind::address_exhausted;
        case EMFILE: case ENFILE: return Kind::descriptor_exhausted;
        default: return Kind::connect_failed;
    }
}
// The kind of a failure of an established connection. `eof`: the peer has closed it. `partial`: part of the answer has
// been received.
inline Kind transfer_kind(int error, bool eof, bool partial) {
    if (eof) return partial ? Kind::truncated : Kind::empty_reply;
    return error == ECONNRESET || error == EPIPE ? Kind::reset : Kind::failed;
}

class Window;

// The counters of one connection, or of one slot. No thread shares them.
struct Result {
    Result() = default; // of flows and streams, which count whenever they end
    explicit Result(const Window& window) : window_(&window) {}

    // flow_ns: of the longest flow of datagrams, by the server's clock.
    std::uint64_t operations = 0, bytes = 0, verified = 0, in_flight = 0, end_ns = 0, flow_ns = 0;
    std::array<std::uint64_t, std::size_t(Kind::count)> errors{};
    Histogram latency, connect;
    std::optional<Datagrams> datagrams;

    // An operation has ended. One that ends after the window was in flight: it does not count, unless its time is over.
    // True if it counts: its latency is then recorded.
    bool succeed(std::uint64_t now, std::uint64_t payload) {
        if (was_in_flight(now)) return false;
        ++operations, ++verified, bytes += payload, end_ns = now;
        return true;
    }
    void fail(Kind kind, std::uint64_t now) {
        if (was_in_flight(now) && kind != Kind::timeout && kind != Kind::connect_timeout) return;
        ++errors[std::size_t(kind)], end_ns = now;
    }
    // One direction of a transfer of a `stream` is over: `good` of `wanted` bytes arrived unchanged, in writes of `size`.
    void add_stream(std::uint64_t wanted, std::uint64_t good, std::size_t size, std::uint64_t now) {
        operations += (good + size - 1) / size;
        bytes += good, verified += good, end_ns = now;
        if (good != wanted) fail(Kind::wrong_content, now);
    }
    // A flow of datagrams of `size` bytes is over: the number sent, when the last one was, and the server's report.
    void add_flow(std::uint64_t sent, std::uint64_t sent_ns, const datagram::Report& report, std::size_t size) {
        end_ns = std::max(end_ns, sent_ns);
        if (!datagrams) datagrams.emplace();
        auto& d = *datagrams;
        d.sent += sent, d.received += report.received, d.lost += sent - std::min(sent, report.received);
        d.reordered += report.reordered, d.duplicates += report.duplicates, d.damaged += report.damaged;
        operations += report.received, bytes += report.bytes;
        verified += report.received * (size - datagram::header);
        if (report.last_ns > report.first_ns) flow_ns = std::max(flow_ns, report.last_ns - report.first_ns);
    }
    std::uint64_t failures() const { return std::accumulate(errors.begin(), errors.end(), std::uint64_t(0)); }
    void merge(const Result& other);

private:
    bool was_in_flight(std::uint64_t now);
    const Window* window_ = nullptr;
};

// Prints the `done` event; `tls` is empty where there was none.
void emit_done(const Result& sum, std::uint64_t start_ns, std::uint64_t cpu_ns, const std::string& tls);

// The window of a client's trial. It opens when all connections are established; each operation begins with begin(). It ends
// at the end of its time, or with the last of its operations; streams end with their last transfer if that is later.
class Window {
public:
    explicit Window(const Spec& spec)
        : budget_(spec.operations), operations_(spec.operations), bytes_(spec.bytes), duration_(spec.duration_ns),
          piece_(spec.workload == "stream" ? spec.size : 0),
          sends_once_(spec.bytes > 0 && (spec.layer == "udp" || spec.layer == "kcp")) {}
    void open() {
        cpu_ = cpu_ns(), start_ = now_ns();
        end_ = duration_ > UINT64_MAX - start_ ? UINT64_MAX : start_ + duration_;
    }
    // Takes one operation out of the budget; false if none is left, or no time.
    bool begin(std::uint64_t now) {
        if (now >= end_) return end(), false;
        std::uint64_t left = budget_.load(std::memory_order_relaxed);
        while (left != 0 && !budget_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {}
        return left != 0;
    }
    // Reads the CPU time when the first connection finds the time over: waiting for operations in flight takes none.
    void end() {
        std::uint64_t unread = UINT64_MAX;
        if (used_ == unread) used_.compare_exchange_strong(unread, cpu_ns() - cpu_);
    }
    std::uint64_t start() const { return start_; }
    std::uint64_t end_ns() const { return end_; }
    // Whether an operation that ends now was in flight at the end. Transfers in flight are finished and count.
    bool leaves_out(std::uint64_t now) const { return now > end_ && piece_ == 0; }
    bool is_over(std::uint64_t now) const { return now >= end_; }

    // A direction of a `stream` ends with its bytes, or by time. `moved`: its bytes so far.
    bool is_by_time() const { return bytes_ == 0; }
    bool stream_is_over(std::uint64_t moved) const { return is_by_time() ? is_over(now_ns()) : moved >= bytes_; }
    std::size_t next_piece(std::uint64_t moved) const { return std::size_t(std::min(piece_, stream_bytes() - moved)); }
    std::uint64_t stream_bytes() const { return is_by_time() ? UINT64_MAX : bytes_; }
    // The negotiated TLS: version, cipher, library with its version.
    void set_tls(std::string tls) { tls_ = std::move(tls); }
    // Closes the window and prints `done`. `all`: pointers to objects with a `result`.
    template <class All> void done(const All& all) {
        end();
        Result sum;
        for (const auto& each : all) sum.merge(each->result);
        sum.end_ns = std::max(sum.end_ns, start_ + sum.flow_ns);
        bool used_up = piece_ == 0 ? sum.in_flight == 0 && sum.operations + sum.failures() >= operations_ : sends_once_;
        if (end_ != UINT64_MAX && !used_up) sum.end_ns = piece_ == 0 ? end_ : std::max(sum.end_ns, end_);
        emit_done(sum, start_, used_, tls_);
    }
    // The same for `dispatch`: `ran` of `posted` handlers have run.
    void done(std::uint64_t ran, std::uint64_t posted) {
        end();
        if (ran != posted)
            throw std::runtime_error(std::to_string(ran) + " handlers ran, " + std::to_string(posted) + " were posted");
        Result sum;
        sum.operations = sum.verified = ran, sum.end_ns = now_ns();
        emit_done(sum, start_, used_, tls_);
    }

private:
    std::atomic<std::uint64_t> budget_, used_{UINT64_MAX};
    std::string tls_;
    std::uint64_t operations_, bytes_, duration_, piece_, start_ = 0, end_ = UINT64_MAX, cpu_ = 0;
    bool sends_once_; // datagrams: `bytes` once, and not until the time is over
};

inline bool Result::was_in_flight(std::uint64_t now) {
    bool was = window_ && window_->leaves_out(now);
    in_flight += was;
    return was;
}

} // namespace linerate
