// Datagrams of a `stream` over UDP: eight bytes of sequence number, then content. The highest numbers are control datagrams.
//
//   client -> server   HELLO until it is answered; payload 0, 1, 2, ...; END until the report arrives
//   server -> client   WELCOME, the answer to HELLO; REPORT, the answer to END
#pragma once

#include "clock.hpp"
#include "content.hpp"
#include "spec.hpp"

#include <map>
#include <memory>

namespace linerate {

// The datagrams of all flows.
struct Datagrams {
    std::uint64_t sent = 0, received = 0, lost = 0, reordered = 0, duplicates = 0, damaged = 0;
};

namespace datagram {

inline constexpr std::size_t header = 8, smallest = 64, largest = 65'507;
inline constexpr std::uint64_t hello = UINT64_MAX, end = UINT64_MAX - 1, report = UINT64_MAX - 2, welcome = UINT64_MAX - 3;
inline constexpr std::uint64_t first_control = UINT64_MAX - 15;
// HELLO and END are repeated at this interval until they are answered.
inline constexpr unsigned repeat_ms = 50;

// The payload of all datagrams, apart from the sequence number.
class Payload {
public:
    explicit Payload(const Spec& spec) {
        need(spec.size >= smallest && spec.size <= largest, "\"size\" must be 64 to 65507 bytes");
        need_client_writes(spec);
        bytes_ = page(spec.size);
    }
    std::size_t size() const { return bytes_.size(); }
    // Writes the sequence number over the first bytes.
    const std::string& number(std::uint64_t sequence) {
        auto wire = to_wire(sequence);
        std::memcpy(&bytes_[0], wire.data(), wire.size());
        return bytes_;
    }
    bool is_right(const char* datagram, std::size_t length) const {
        return length == bytes_.size() && std::memcmp(datagram + header, bytes_.data() + header, length - header) == 0;
    }

private:
    std::string bytes_;
};

// `options.mode`; the default is one datagram a call.
inline std::string mode(const Spec& spec) {
    auto mode = spec.option("mode");
    return mode.empty() ? "single" : mode;
}

// A server's report of one flow, in the order of the wire; times are its CLOCK_MONOTONIC.
struct Report {
    std::uint64_t received = 0, bytes = 0, reordered = 0, duplicates = 0, damaged = 0, first_ns = 0, last_ns = 0;

    // Whether a path can cause it with `sent` datagrams of `size` bytes, the last of which was sent within `elapsed`
    // nanoseconds: up to 64 copies of each, and clocks that differ by up to 1 %.
    bool is_possible(std::uint64_t sent, std::uint64_t size, std::uint64_t elapsed) const {
        return received <= sent && bytes == received * size && reordered <= received && duplicates <= 64 * sent &&
               damaged <= 64 * sent && first_ns <= last_ns && last_ns - first_ns <= elapsed + elapsed / 100;
    }
};

inline std::uint64_t word(const char* datagram, std::size_t index) {
    std::array<char, 8> bytes;
    std::memcpy(bytes.data(), datagram + 8 * index, bytes.size());
    return from_wire(bytes);
}
inline std::string words(std::initializer_list<std::uint64_t> numbers) {
    std::string bytes;
    for (auto number : numbers) {
        auto wire = to_wire(number);
        bytes.append(wire.data(), wire.size());
    }
    return bytes;
}

// The sequence number of payload, or the number of a control datagram; 2^64-16 for any other datagram.
inline std::uint64_t kind(const char* datagram, std::size_t length) {
    if (length < header) return first_control;
    auto number = word(datagram, 0);
    if (number < first_control) return number;
    if ((number == hello || number == welcome || number == end) && length == 16) return number;
    return number == report && length == 64 ? number : first_control;
}

// The receiver's counters of one flow. Reordering: a number below the highest so far (RFC 4737). Duplicates: a bit for each
// of the last 65,536 numbers. Loss is computed by the client at the end.
class Flow {
public:
    Report report;

    void good(std::uint64_t sequence, std::size_t length, std::uint64_t now) {
        auto& word = seen_[sequence % window / 64];
        auto bit = std::uint64_t(1) << sequence % 64;
        if (sequence >= next_) {
            forget(sequence);
            next_ = sequence + 1;
        } else if (next_ - sequence <= window && (word & bit) != 0) {
            ++report.duplicates;
            return;
        } else {
            ++report.reordered;
        }
        if (next_ - sequence <= window) word |= bit;
        if (report.received++ == 0) report.first_ns = now;
        report.last_ns = now, report.bytes += length;
    }

private:
    static constexpr std::uint64_t window = 65'536;
    std::uint64_t next_ = 0;
    std::array<std::uint64_t, window / 64> seen_{};

    // Clears the bits of skipped numbers, which are those of numbers a window before them.
    void forget(std::uint64_t sequence) {
        if (sequence - next_ >= window) return seen_.fill(0);
        for (auto skipped = next_; skipped < sequence; ++skipped)
            seen_[skipped % window / 64] &= ~(std::uint64_t(1) << skipped % 64);
    }
};

// A server's flows, by source address.
template <class Address> class Flows {
public:
    explicit Flows(const Payload& payload) : payload_(payload) {}

    // Takes a datagram. Returns the answer, empty for payload; valid until the next call.
    std::string_view arrived(const Address& from, const char* datagram, std::size_t length, std::uint64_t now) {
        auto number = kind(datagram, length);
        // What a server sends is answered by none: two servers never answer each other.
        if (number == first_control || number == linerate::datagram::report || number == welcome) return {};
        auto& flow = flows_[from];
        if (!flow || number == hello) flow = std::make_unique<Flow>();
        if (number == hello) return answer_ = words({welcome, 0});
        auto& r = flow->report;
        if (number == end)
            return answer_ = words({linerate::datagram::report, r.received, r.bytes, r.reordered, r.duplicates, r.damaged,
                                    r.first_ns, r.last_ns});
        if (payload_.is_right(datagram, length)) flow->good(number, length, now);
        else ++r.damaged;
        return {};
    }

private:
    const Payload& payload_;
    std::map<Address, std::unique_ptr<Flow>> flows_;
    std::string answer_;
};

// A client's side of one flow.
class Sender {
public:
    explicit Sender(const Spec& spec)
        : payload_(spec), limit_(spec.bytes == 0 ? UINT64_MAX : (spec.bytes + spec.size - 1) / spec.size) {}

    // sent_ns: when the last one was sent.
    std::uint64_t sent = 0, sent_ns = 0;
    Report report;
    bool is_malformed = false; // the server's report was none that a path can cause

    bool has_more() const { return sent < limit_; }
    const std::string& next() { return payload_.number(sent); }
    // HELLO until the server has answered, END afterwards.
    const std::string& question() {
        if (greeted_ && sent_ns == 0) sent_ns = now_ns();
        return question_ = greeted_ ? words({end, sent}) : words({hello, 0});
    }
    // Takes a datagram: true if it answers the question.
    bool answers(const char* datagram, std::size_t length) {
        auto number = kind(datagram, length);
        if (!greeted_) return began_ = now_ns(), greeted_ = number == welcome;
        if (number != linerate::datagram::report) return false;
        Report arrived = {word(datagram, 1), word(datagram, 2), word(datagram, 3), word(datagram, 4),
                          word(datagram, 5), word(datagram, 6), word(datagram, 7)};
        is_malformed = !arrived.is_possible(sent, payload_.size(), now_ns() - began_);
        if (!is_malformed) report = arrived;
        return true;
    }

private:
    Payload payload_;
    std::string question_;
    std::uint64_t limit_, began_ = 0;
    bool greeted_ = false;
};

} // namespace datagram
} // namespace linerate
