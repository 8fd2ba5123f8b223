// One end of one connection's conversation: what to send next, and what to do with what came. It knows no transport, so
// that programs whose layers differ (a socket, TLS, WebSocket) do the same work. `rr`, and the counted form of `stream`.
//
// Only one end speaks at a time. A transport's loop: write what next() has, until it has nothing; close if it is over();
// else read, and have it receive() what came.
#pragma once

#include "account.hpp"
#include "watchdog.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

namespace linerate {

class Conversation {
public:
    virtual ~Conversation() = default;
    // The next write or message; empty: it is the other end's turn. Valid until the next call.
    virtual std::string_view next() = 0;
    // What has come, in whatever pieces. Valid until next() has been called again and what it gave is sent.
    virtual void receive(std::string_view bytes) = 0;
};

// ---------------------------------------------------------------------------------------------- servers

class Echo : public Conversation {
public:
    std::string_view next() override { return std::exchange(bytes_, {}); }
    void receive(std::string_view bytes) override { bytes_ = bytes; }

private:
    std::string_view bytes_;
};

namespace detail {

// The 8 bytes of a number, which may come in pieces.
class Number {
public:
    // Takes what belongs to the number; true if it is whole.
    bool take(std::string_view& bytes) {
        auto length = std::min(bytes.size(), wire_.size() - have_);
        std::copy_n(bytes.data(), length, wire_.data() + have_);
        bytes.remove_prefix(length), have_ += length;
        return have_ == wire_.size();
    }
    std::uint64_t value() const { return from_wire(wire_); }
    std::size_t have() const { return have_; }

private:
    std::array<char, 8> wire_{};
    std::size_t have_ = 0;
};

// What is left of one transfer's content, at the end that sends it and at the end that compares it.
class Transfer {
public:
    void begin(std::uint64_t bytes) { at_ = good_ = 0, end_ = bytes; }
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

class StreamServer : public Conversation {
public:
    StreamServer(const Spec& spec, const Content& content)
        : content_(content), size_(spec.size), client_writes_(Direction(spec).client_writes) {}

    std::string_view next() override {
        if (counted_) {
            counted_ = false, wire_ = to_wire(transfer_.good());
            return {wire_.data(), wire_.size()};
        }
        if (!sending_ || transfer_.over()) return {};
        return transfer_.piece(content_, size_);
    }
    void receive(std::string_view bytes) override {
        while (!bytes.empty() || (receiving_ && transfer_.over())) {
            if (receiving_) {
                transfer_.compare(content_, bytes);
                if (!transfer_.over()) return;
                receiving_ = false, counted_ = true;
            } else if (number_.take(bytes)) {
                transfer_.begin(number_.value());
                number_ = {};
                (client_writes_ ? receiving_ : sending_) = true;
            }
        }
    }

private:
    const Content& content_;
    std::size_t size_;
    bool client_writes_, receiving_ = false, sending_ = false, counted_ = false;
    detail::Number number_;
    detail::Transfer transfer_;
    std::array<char, 8> wire_{};
};

inline std::unique_ptr<Conversation> make_server(const Spec& spec, const Content& content) {
    if (spec.workload == "stream") return std::make_unique<StreamServer>(spec, content);
    return std::make_unique<Echo>();
}

// ---------------------------------------------------------------------------------------------- clients

// A client's end: counts for itself, and is watched while the transport has a socket.
class Client : public Conversation {
public:
    Account account;
    Watched watched;

    // It has had all that it asked for: the connection is closed in order.
    virtual bool over() const = 0;
    // Bytes of the answer in flight.
    virtual std::size_t received() const = 0;

    // The connection has failed after it stood. `eof`: the peer has closed it.
    void fail(int error, bool eof) {
        if (over()) return; // what it asked for was there; how the connection ended after it changes nothing
        account.fail(watched.timed_out() ? Kind::timeout : transfer_kind(error, eof, received()), now_ns());
    }
    // It has failed before it stood.
    void fail_connect(Kind kind) { account.fail(watched.timed_out() ? Kind::connect_timeout : kind, now_ns()); }
};

class RrClient : public Client {
public:
    RrClient(const Spec& spec, Window& window) : window_(window), message_(page(spec.size)) {}

    std::string_view next() override {
        if (asked_ || over_) return {};
        auto now = now_ == 0 ? now_ns() : now_;
        if (!window_.begin(now)) return over_ = true, std::string_view();
        began_ = now, received_ = 0, same_ = true, asked_ = true;
        return message_;
    }
    void receive(std::string_view bytes) override {
        watched.move();
        bool fits = asked_ && bytes.size() <= message_.size() - received_;
        same_ = same_ && fits && std::memcmp(message_.data() + received_, bytes.data(), bytes.size()) == 0;
        received_ += bytes.size();
        if (received_ < message_.size()) return;
        now_ = now_ns(), asked_ = false;
        if (!same_) return account.fail(Kind::wrong_content, now_);
        account.succeed(now_, message_.size());
        account.latency.record(now_ - began_);
    }
    bool over() const override { return over_; }
    std::size_t received() const override { return received_; }

private:
    Window& window_;
    std::string message_;
    std::uint64_t began_ = 0, now_ = 0;
    std::size_t received_ = 0;
    bool asked_ = false, same_ = true, over_ = false;
};

class StreamClient : public Client {
public:
    StreamClient(const Spec& spec, const Content& content)
        : content_(content), spec_(spec), client_writes_(Direction(spec).client_writes), left_(transfers(spec)) {}

    // How many transfers, one after another on the same connection.
    static std::uint64_t transfers(const Spec& spec) {
        auto text = spec.option("transfers");
        if (text.empty()) return 1;
        char* end = nullptr;
        auto number = std::strtoull(text.c_str(), &end, 10);
        need(*end == '\0' && text[0] != '-' && number >= 1, "\"options.transfers\" must be a number above 0");
        return number;
    }

    std::string_view next() override {
        watched.move();
        if (over()) return {};
        if (!asked_) {
            asked_ = true, began_ = now_ns();
            transfer_.begin(spec_.bytes);
            wire_ = to_wire(spec_.bytes);
            return {wire_.data(), wire_.size()};
        }
        if (!client_writes_ || transfer_.over()) return {};
        return transfer_.piece(content_, spec_.size);
    }
    void receive(std::string_view bytes) override {
        watched.move();
        if (client_writes_) {
            if (number_.take(bytes)) finish(number_.value());
        } else {
            transfer_.compare(content_, bytes);
            if (transfer_.over()) finish(transfer_.good());
        }
    }
    bool over() const override { return left_ == 0; }
    std::size_t received() const override { return client_writes_ ? number_.have() : std::size_t(transfer_.at()); }

private:
    void finish(std::uint64_t good) {
        auto now = now_ns();
        account.add_stream(spec_.bytes, good, now);
        account.operations += (good + spec_.size - 1) / spec_.size;
        account.latency.record(now - began_);
        number_ = {}, asked_ = false, --left_;
    }

    const Content& content_;
    const Spec& spec_;
    bool client_writes_, asked_ = false;
    std::uint64_t left_, began_ = 0;
    detail::Number number_;
    detail::Transfer transfer_;
    std::array<char, 8> wire_{};
};

inline std::unique_ptr<Client> make_client(const Spec& spec, Window& window, const Content& content) {
    if (spec.workload == "stream") return std::make_unique<StreamClient>(spec, content);
    return std::make_unique<RrClient>(spec, window);
}

// What a program can do that has every conversation on these layers.
inline std::vector<Ability> conversations(std::vector<const char*> layers, void (*serve)(const Spec&),
                                          void (*drive)(const Spec&)) {
    std::vector<Ability> all;
    for (std::string_view layer : layers)
        for (auto workload : {"rr", "stream"}) {
            bool counted = layer == "tcp" && std::string_view(workload) == "stream";
            all.push_back({"server", layer.data(), workload, serve, counted});
            all.push_back({"client", layer.data(), workload, drive, counted});
        }
    return all;
}

// What a conversation's spec must have; the greatest message or write is 1 MiB.
inline void need_conversation(const Spec& spec) {
    if (spec.workload != "stream") {
        if (spec.role == "client") need_message(spec);
        return;
    }
    Direction direction(spec);
    if (direction.client_writes && direction.client_reads) throw Unsupported("a stream both ways, here");
    need(spec.size <= longest_write, "\"size\" must be at most 1048576 bytes");
    if (spec.role == "client") need(spec.bytes > 0, "\"bytes\" is missing"), StreamClient::transfers(spec);
}

// What a transport reads at once.
inline std::size_t read_size(const Spec& spec) {
    return spec.role == "server" && spec.workload != "stream" ? echo_buffer : std::max<std::size_t>(spec.size, 8);
}

} // namespace linerate
