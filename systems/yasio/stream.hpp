// A `stream` over TCP. yasio closes a connection as soon as its peer has ended its side, so there is no `both`.
#pragma once

#include "linerate/conversation.hpp"
#include "service.hpp"

namespace over_tcp {

using namespace linerate;

// What all connections share.
struct Flow {
    explicit Flow(const Spec& spec) : direction(spec), size(spec.size), content(spec.size) {
        if (direction.client_reads && direction.client_writes)
            throw Unsupported("both directions: yasio closes a connection when its peer has ended its side");
    }
    Direction direction;
    std::size_t size;
    Content content;
};

class Session {
public:
    Session(Service& service, yasio::transport_handle_t transport, const Flow& flow) : service_(service), transport_(transport), flow_(flow) {
        service.set_no_delay(transport);
    }

    void packet(std::string_view bytes) {
        if (flow_.direction.client_writes) {
            good_ += flow_.content.good(received_, bytes.data(), bytes.size());
            received_ += bytes.size();
        } else if (asked_.take(bytes)) {
            next();
        }
    }
    // The client has ended its side, and this is the last moment at which its socket is open.
    void closed(int error) {
        if (error != yasio::errc::eof || !flow_.direction.client_writes) return;
        auto number = to_wire(good_);
        transport_->socket_->send(number.data(), int(number.size()));
    }

private:
    void next() {
        if (sent_ == asked_.value()) return service_.io.close(transport_);
        auto piece = std::size_t(std::min<std::uint64_t>(flow_.size, asked_.value() - sent_));
        service_.io.forward(transport_, flow_.content.at(sent_), piece, [this](int, std::size_t length) {
            sent_ += length;
            next();
        });
    }

    Service& service_;
    yasio::transport_handle_t transport_;
    const Flow& flow_;
    detail::Number asked_;
    std::uint64_t received_ = 0, good_ = 0, sent_ = 0;
};

class Stream : public Peer {
public:
    Stream(Channels& channels, const Flow& flow) : channels_(channels), flow_(flow) {}

    void opened() override {
        channels_.service.set_no_delay(transport);
        channels_.stands(*this);
    }
    void begin() override {
        moved_ = now_ns();
        if (flow_.direction.client_writes) return next();
        auto number = to_wire(channels_.window.stream_bytes());
        channels_.service.io.write(transport, number.data(), number.size());
    }
    void packet(std::string_view bytes) override {
        moved_ = now_ns();
        if (flow_.direction.client_writes) {
            if (counted_.take(bytes)) finish(sent_, counted_.value());
            return;
        }
        good_ += flow_.content.good(received_, bytes.data(), bytes.size());
        received_ += bytes.size();
        if (channels_.window.stream_is_over(received_)) finish(received_, good_);
    }
    void closed(int error) override {
        auto received = flow_.direction.client_writes ? counted_.have() : received_;
        fail(stood ? transfer_kind(error, error == yasio::errc::eof, received) : connect_kind(error));
    }
    void tick(std::uint64_t now) override {
        if (moved_ != 0 && now - moved_ >= channels_.spec.timeout_ns) fail(Kind::timeout);
    }

private:
    void next() {
        auto& window = channels_.window;
        // Everything is with the kernel: the end follows it.
        if (window.stream_is_over(sent_)) return void(transport->socket_->shutdown(SHUT_WR));
        channels_.service.io.forward(transport, flow_.content.at(sent_), window.next_piece(sent_), [this](int, std::size_t length) {
            moved_ = now_ns();
            sent_ += length;
            next();
        });
    }
    void finish(std::uint64_t moved, std::uint64_t good) {
        account.add_stream(channels_.window.wanted(moved), good, now_ns());
        channels_.ended(*this);
    }
    void fail(Kind kind) {
        account.fail(kind, now_ns());
        channels_.ended(*this);
    }

    Channels& channels_;
    const Flow& flow_;
    detail::Number counted_;
    std::uint64_t moved_ = 0, received_ = 0, good_ = 0, sent_ = 0;
};

inline void serve(const Spec& spec) {
    Flow flow(spec);
    Server<Session> server(spec);
    server.run(yasio::YCK_TCP_SERVER, [&](auto transport) { return new Session(server.service(), transport, flow); });
}

inline void drive(const Spec& spec) {
    Flow flow(spec);
    flow.direction.need_end(spec);
    Channels channels(spec, yasio::YCK_TCP_CLIENT);
    for (std::uint32_t i = 0; i < spec.connections; ++i) channels.peers.push_back(std::make_unique<Stream>(channels, flow));
    channels.run(std::chrono::microseconds(std::min<std::uint64_t>(spec.timeout_ns / 4'000, 1'000'000) + 1));
}

} // namespace over_tcp
