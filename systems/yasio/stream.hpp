// A `stream` over TCP.
#pragma once

#include "linerate/protocol_spec.hpp"
#include "service.hpp"

namespace over_tcp {

using namespace linerate;

// Writes the protocol's bytes, one write at a time.
class Writer {
public:
    Writer(Service& service, Protocol& protocol) : service_(service), protocol_(protocol) {}

    void step(yasio::transport_handle_t transport) {
        if (writing_) return;
        auto piece = protocol_.next();
        if (piece.empty()) {
            // The kernel has everything: the end of the stream follows it.
            if (protocol_.shuts_down()) transport->socket_->shutdown(SHUT_WR);
            return;
        }
        writing_ = true;
        service_.io.forward(transport, piece.data(), piece.size(), [this, transport](int error, std::size_t) {
            writing_ = false;
            if (error == 0) step(transport);
        });
    }

private:
    Service& service_;
    Protocol& protocol_;
    bool writing_ = false;
};

class Session {
public:
    Session(Service& service, yasio::transport_handle_t transport, const Spec& spec, const Content& content)
        : transport_(transport), protocol_(spec, content), writer_(service, protocol_) {
        service.set_no_delay(transport);
    }

    void packet(std::string_view bytes) {
        protocol_.receive(bytes);
        writer_.step(transport_);
    }
    // yasio closes a connection when its peer has ended its side. This is the last moment at which its socket is open, so the
    // count of a stream by time is sent here.
    void closed(int error) {
        if (error != yasio::errc::eof || !protocol_.end()) return;
        auto count = protocol_.next();
        transport_->socket_->send(count.data(), int(count.size()));
    }

private:
    yasio::transport_handle_t transport_;
    StreamServer protocol_;
    Writer writer_;
};

class Stream : public Peer {
public:
    Stream(Channels& channels, const Content& content)
        : channels_(channels), client_(channels.spec, channels.window, content), writer_(channels.service, client_) {}

    void opened() override {
        channels_.service.set_no_delay(transport);
        channels_.established(*this);
    }
    void begin() override {
        moved_ = now_ns();
        writer_.step(transport);
    }
    void packet(std::string_view bytes) override {
        client_.receive(bytes);
        if (client_.over()) return end();
        writer_.step(transport);
    }
    void closed(int error) override {
        if (is_established) client_.fail(error, error == yasio::errc::eof);
        else client_.fail_connect(connect_kind(error));
        end();
    }
    void tick(std::uint64_t now) override {
        if (moved_ == 0) return;
        if (auto moves = client_.watched.moves(); moves != moves_) moves_ = moves, moved_ = now;
        if (now - moved_ < channels_.spec.timeout_ns) return;
        client_.result.fail(Kind::timeout, now);
        end();
    }

private:
    void end() {
        result.merge(client_.result);
        channels_.ended(*this);
    }

    Channels& channels_;
    StreamClient client_;
    Writer writer_;
    std::uint64_t moved_ = 0, moves_ = 0;
};

inline void serve(const Spec& spec) {
    need_protocol(spec, true);
    Content content(spec.size);
    Server<Session> server(spec);
    auto make = [&](auto transport) { return new Session(server.service(), transport, spec, content); };
    server.run(yasio::YCK_TCP_SERVER, make);
}

inline void drive(const Spec& spec) {
    need_protocol(spec, true);
    Content content(spec.size);
    Channels channels(spec, yasio::YCK_TCP_CLIENT);
    for (std::uint32_t i = 0; i < spec.connections; ++i)
        channels.peers.push_back(std::make_unique<Stream>(channels, content));
    channels.run(std::chrono::microseconds(std::min<std::uint64_t>(spec.timeout_ns / 4'000, 1'000'000) + 1));
}

} // namespace over_tcp
