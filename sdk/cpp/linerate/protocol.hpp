// The protocols of `rr`, `crr`, `fanout` and `stream` as state machines, one for each end of a connection. They do no I/O,
// so that programs with different transports (a socket, TLS, WebSocket) do the same work.
//
// A transport's loop: write next() until it is empty. Then, if over(), close; if shuts_down(), shut down the sending side.
// Read, and pass the received bytes to receive(). If is_duplex(), read while writing, too.
#pragma once

#include "result.hpp"
#include "watchdog.hpp"

#include <functional>
#include <memory>
#include <utility>

namespace linerate {

class Protocol {
public:
    virtual ~Protocol() = default;
    // The next write or message; empty: none before more has arrived. Valid until the next call.
    virtual std::string_view next() = 0;
    // Takes received bytes, cut anywhere. Without is_duplex() the bytes stay unchanged until next() is empty.
    virtual void receive(std::string_view bytes) = 0;
    // The peer has ended its side. True if the protocol goes on: next() has an answer.
    virtual bool end() { return false; }
    // True once, if this end shuts down its sending side and goes on to read.
    virtual bool shuts_down() { return false; }
    // Both ends send at once.
    virtual bool is_duplex() const { return false; }
    // This end closes the connection.
    virtual bool over() const { return false; }
};

// ---------------------------------------------------------------------------------------------- servers

class Echo : public Protocol {
public:
    std::string_view next() override { return std::exchange(bytes_, {}); }
    void receive(std::string_view bytes) override { bytes_ = bytes; }

private:
    std::string_view bytes_;
};

namespace detail {

// The 8 bytes of a number, which may arrive in pieces.
class Number {
public:
    // Takes the number's bytes; true if it is complete.
    bool take(std::string_view& bytes) {
        auto length = std::min(bytes.size(), wire_.size() - have_);
        std::copy_n(bytes.data(), length, wire_.data() + have_);
        bytes.remove_prefix(length), have_ += length;
        return have_ == wire_.size();
    }
    std::uint64_t value() const { return from_wire(wire_); }

private:
    std::array<char, 8> wire_{};
    std::size_t have_ = 0;
};

// One direction of a transfer, at the end that sends it or at the end that compares it.
class Transfer {
public:
    void begin(std::uint64_t bytes) { at_ = good_ = 0, end_ = bytes; }
    void stop() { end_ = at_; }
    bool over() const { return at_ == end_; }
    std::string_view piece(const Content& content, std::size_t size) {
        auto length = std::size_t(std::min<std::uint64_t>(size, end_ - at_));
        return {content.at(std::exchange(at_, at_ + length)), length};
    }
    void compare(const Content& content, std::string_view& bytes) {
        auto length = std::size_t(std::min<std::uint64_t>(bytes.size(), end_ - at_));
        good_ += content.good(at_, bytes.data(), length);
        at_ += length, bytes.remove_prefix(length);
    }
    std::uint64_t at() const { return at_; }
    std::uint64_t good() const { return good_; }

private:
    std::uint64_t at_ = 0, end_ = 0, good_ = 0;
};

} // namespace detail

class StreamServer : public Protocol {
public:
    StreamServer(const Spec& spec, const Content& content) : content_(content), size_(spec.size), direction_(spec) {}

    std::string_view next() override {
        if (!running_) return {};
        if (!outgoing_.over()) {
            auto piece = outgoing_.piece(content_, size_);
            running_ = direction_.client_writes || !outgoing_.over();
            return piece;
        }
        if (!incoming_.over()) return {};
        running_ = false, wire_ = to_wire(incoming_.good());
        return {wire_.data(), wire_.size()};
    }
    void receive(std::string_view bytes) override {
        while (!bytes.empty()) {
            if (!incoming_.over()) incoming_.compare(content_, bytes);
            else if (running_) return; // the client must wait for the end of the transfer
            else if (number_.take(bytes)) begin();
        }
    }
    // A transfer by time ends with the client's side; any other is truncated. This end closes after its number: a second read
    // after the end of a connection may wait for ever (Asio).
    bool end() override {
        if (!running_ || !by_time_) return false;
        by_time_ = false, ended_ = true, incoming_.stop();
        return true;
    }
    bool over() const override { return ended_ && !running_; }
    bool is_duplex() const override { return direction_.is_both(); }

private:
    void begin() {
        auto bytes = std::exchange(number_, {}).value();
        incoming_.begin(direction_.client_writes ? bytes : 0);
        outgoing_.begin(direction_.client_reads ? bytes : 0);
        by_time_ = bytes == UINT64_MAX && !direction_.client_reads;
        running_ = direction_.client_writes || bytes > 0;
    }

    const Content& content_;
    std::size_t size_;
    Direction direction_;
    bool running_ = false, by_time_ = false, ended_ = false;
    detail::Number number_;
    detail::Transfer incoming_, outgoing_;
    std::array<char, 8> wire_{};
};

inline std::unique_ptr<Protocol> make_server(const Spec& spec, const Content& content) {
    if (spec.workload == "stream") return std::make_unique<StreamServer>(spec, content);
    return std::make_unique<Echo>();
}

// ---------------------------------------------------------------------------------------------- clients

// A client's end. It counts for itself, and the watchdog observes it while it has a socket.
class Client : public Protocol {
public:
    explicit Client(const Window& window) : result(window) {}

    Result result;
    Watched watched;

    // Part of the answer in flight has arrived.
    virtual bool is_partial() const = 0;
    // An established connection has failed. `eof`: the peer has closed it.
    virtual void fail(int error, bool eof) {
        if (over()) return; // a failure after the last operation changes nothing
        count(transfer_kind(error, eof, is_partial()));
    }
    // The connection could not be established.
    virtual void fail_connect(Kind kind) { result.fail(watched.timed_out() ? Kind::connect_timeout : kind, now_ns()); }

protected:
    void count(Kind kind) { result.fail(watched.timed_out() ? Kind::timeout : kind, now_ns()); }
};

// One message out, and the same bytes back.
class ExchangeClient : public Client {
public:
    ExchangeClient(const Spec& spec, const Window& window) : Client(window), message_(page(spec.size)) {}

    void receive(std::string_view bytes) override {
        watched.move();
        bool fits = in_flight_ && bytes.size() <= message_.size() - received_;
        same_ = same_ && fits && std::memcmp(message_.data() + received_, bytes.data(), bytes.size()) == 0;
        received_ += bytes.size();
        if (received_ < message_.size()) return;
        in_flight_ = false;
        back(same_, now_ns());
    }
    bool is_partial() const override { return received_ > 0; }

protected:
    std::string_view ask() {
        received_ = 0, same_ = in_flight_ = true;
        return message_;
    }
    void count_exchange(bool same, std::uint64_t began, std::uint64_t now, std::uint64_t bytes) {
        if (!same) return result.fail(Kind::wrong_content, now);
        if (result.succeed(now, bytes)) result.latency.record(now - began);
    }
    // As many bytes as the message has are back.
    virtual void back(bool same, std::uint64_t now) = 0;

    const std::string message_;
    bool in_flight_ = false;

private:
    std::size_t received_ = 0;
    bool same_ = true;
};

class RrClient : public ExchangeClient {
public:
    RrClient(const Spec& spec, Window& window) : ExchangeClient(spec, window), window_(window) {}

    std::string_view next() override {
        if (in_flight_ || over_) return {};
        began_ = now_ == 0 ? now_ns() : now_;
        over_ = !window_.begin(began_);
        return over_ ? std::string_view() : ask();
    }
    bool over() const override { return over_; }

protected:
    bool over_ = false;

    void back(bool same, std::uint64_t now) override {
        count_exchange(same, began_, now, message_.size());
        now_ = now;
    }

private:
    Window& window_;
    std::uint64_t began_ = 0, now_ = 0;
};

// An operation: begin(), connect, connected(), the transport's loop until over(), close, closed().
class CrrClient : public ExchangeClient {
public:
    CrrClient(const Spec& spec, Window& window) : ExchangeClient(spec, window), window_(window) {}

    // False if the window is over.
    bool begin() {
        began_ = now_ns(), asked_ = over_ = false;
        return window_.begin(began_);
    }
    void connected() { result.connect.record(now_ns() - began_); }
    void closed() {
        if (over_) count_exchange(same_, began_, now_ns(), message_.size());
    }
    std::string_view next() override { return std::exchange(asked_, true) ? std::string_view() : ask(); }
    bool over() const override { return over_; }

private:
    void back(bool same, std::uint64_t) override { over_ = true, same_ = same; }

    Window& window_;
    std::uint64_t began_ = 0;
    bool asked_ = false, over_ = false, same_ = false;
};

// The rounds of `fanout`, which several threads may share: each operation is one exchange on every connection, and the last
// connection whose exchange is over begins the next round.
class Rounds {
public:
    Rounds(Window& window, std::size_t connections, std::size_t size)
        : window_(window), connections_(connections), bytes_(connections * size) {}

    // Has the transports of all connections call next(), each on its own thread or executor.
    std::function<void()> wake;

    void begin(std::uint64_t now) {
        if (over_) return;
        if (window_.begin(now)) began_ = now, missing_ = connections_, same_ = true, ++number_;
        else over_ = true;
        wake();
    }

private:
    friend class FanoutClient;
    Window& window_;
    const std::size_t connections_;
    const std::uint64_t bytes_;
    std::uint64_t began_ = 0;
    std::atomic<std::uint64_t> number_{0};
    std::atomic<std::size_t> missing_{0};
    std::atomic<bool> same_{true}, over_{false};
};

class FanoutClient : public ExchangeClient {
public:
    FanoutClient(const Spec& spec, Rounds& rounds) : ExchangeClient(spec, rounds.window_), rounds_(rounds) {}

    std::string_view next() override {
        auto round = rounds_.number_.load();
        if (over() || std::exchange(round_, round) == round) return {};
        watched.move();
        return ask();
    }
    bool is_duplex() const override { return true; } // it waits for bytes between its rounds, too
    bool over() const override { return rounds_.over_; }
    // An operation fails once, however many of its connections do: with the first failure's kind.
    void fail(int error, bool eof) override {
        if (rounds_.over_.exchange(true)) return;
        count(transfer_kind(error, eof, is_partial()));
        rounds_.wake();
    }
    void fail_connect(Kind kind) override {
        if (!rounds_.over_.exchange(true)) Client::fail_connect(kind);
    }

private:
    void back(bool same, std::uint64_t now) override {
        if (!same) rounds_.same_ = false;
        if (rounds_.missing_.fetch_sub(1) != 1) return;
        count_exchange(rounds_.same_, rounds_.began_, now, rounds_.bytes_);
        rounds_.begin(now);
    }

    Rounds& rounds_;
    std::uint64_t round_ = 0;
};

class StreamClient : public Client {
public:
    StreamClient(const Spec& spec, const Window& window, const Content& content)
        : Client(window), content_(content), window_(window), size_(spec.size), direction_(spec), left_(transfers(spec)) {}

    // Transfers one after another on the same connection. With `bytes` and a duration they follow until the time is over.
    static std::uint64_t transfers(const Spec& spec) {
        bool until_time_is_over = spec.bytes > 0 && spec.duration_ns != UINT64_MAX;
        return until_time_is_over ? UINT64_MAX : number_option(spec, "transfers", 1, 1, UINT64_MAX);
    }

    std::string_view next() override {
        watched.move();
        if (over()) return {};
        if (!running_) {
            auto bytes = window_.stream_bytes();
            running_ = true, began_ = now_ns(), wire_ = to_wire(bytes);
            incoming_.begin(direction_.client_reads ? bytes : 0);
            outgoing_.begin(direction_.client_writes ? bytes : 0);
            return {wire_.data(), wire_.size()};
        }
        if (outgoing_.over()) return {};
        if (!is_time_over()) return outgoing_.piece(content_, size_);
        outgoing_.stop(), shuts_down_ = true;
        return {};
    }
    void receive(std::string_view bytes) override {
        watched.move();
        if (!running_) return;
        incoming_.compare(content_, bytes);
        if (!incoming_.over() && is_time_over()) incoming_.stop();
        if (incoming_.over() && (!direction_.client_writes || number_.take(bytes))) finish();
    }
    bool shuts_down() override { return std::exchange(shuts_down_, false); }
    bool is_duplex() const override { return direction_.is_both(); }
    bool over() const override { return left_ == 0; }
    bool is_partial() const override { return true; } // an end of stream inside a transfer truncates it

private:
    bool is_time_over() const { return window_.is_by_time() && window_.is_over(now_ns()); }
    void finish() {
        auto now = now_ns();
        if (direction_.client_reads) result.add_stream(incoming_.at(), incoming_.good(), size_, now);
        if (direction_.client_writes) result.add_stream(outgoing_.at(), number_.value(), size_, now);
        result.latency.record(now - began_);
        number_ = {}, running_ = false, left_ = window_.is_over(now) ? 0 : left_ - 1;
    }

    const Content& content_;
    const Window& window_;
    std::size_t size_;
    Direction direction_;
    bool running_ = false, shuts_down_ = false;
    std::uint64_t left_, began_ = 0;
    detail::Number number_;
    detail::Transfer incoming_, outgoing_;
    std::array<char, 8> wire_{};
};

} // namespace linerate
