// A `stream` over UDP, a call for each datagram: yasio has neither sendmmsg nor GSO.
#pragma once

#include "service.hpp"

namespace over_udp {

using namespace linerate;

inline void need_single(const Spec& spec) {
    if (datagram::mode(spec) != "single") throw Unsupported("\"options.mode\" other than single");
}

// yasio has a transport for each peer, so its id identifies the address.
class Session {
public:
    using Flows = datagram::Flows<unsigned>;

    Session(Service& service, yasio::transport_handle_t transport, Flows& flows)
        : service_(service), transport_(transport), flows_(flows) {}

    void packet(std::string_view bytes) {
        auto answer = flows_.arrived(transport_->id(), bytes.data(), bytes.size(), now_ns());
        if (!answer.empty()) service_.io.write(transport_, answer.data(), answer.size());
    }
    void closed(int) {}

private:
    Service& service_;
    yasio::transport_handle_t transport_;
    Flows& flows_;
};

// One flow of a client: HELLO until it is answered, payload, END until it is answered.
class Flow : public Peer {
public:
    explicit Flow(Channels& channels) : channels_(channels), sender_(channels.spec) {}

    void opened() override { ask(); }
    void begin() override { next(); }
    void packet(std::string_view bytes) override {
        if (!asking_ || !sender_.answers(bytes.data(), bytes.size())) return;
        asking_ = false;
        if (sender_.is_malformed) return fail(Kind::malformed);
        if (!is_established) return channels_.established(*this);
        result.add_flow(sender_.sent, sender_.sent_ns, sender_.report, channels_.spec.size);
        channels_.ended(*this);
    }
    void closed(int error) override {
        if (is_established) fail(error == ECONNREFUSED ? Kind::reset : Kind::failed);
        else fail(connect_kind(error));
    }
    void tick(std::uint64_t now) override {
        if (!asking_) return;
        if (now >= deadline_) fail(is_established ? Kind::timeout : Kind::connect_timeout);
        else question();
    }

private:
    // Sends the question until it is answered.
    void ask() {
        deadline_ = now_ns() + channels_.spec.timeout_ns, asking_ = true;
        question();
    }
    void question() {
        auto& bytes = sender_.question();
        channels_.service.io.write(transport, bytes.data(), bytes.size());
    }
    void next() {
        if (!sender_.has_more() || channels_.window.is_over(now_ns())) return ask();
        auto& bytes = sender_.next();
        channels_.service.io.forward(transport, bytes.data(), bytes.size(), [this](int error, std::size_t) {
            if (over) return;
            if (error != 0) return fail(error == ECONNREFUSED ? Kind::reset : Kind::failed);
            ++sender_.sent;
            next();
        });
    }
    void fail(Kind kind) {
        result.fail(kind, now_ns());
        if (is_established) result.add_flow(sender_.sent, sender_.sent_ns, sender_.report, channels_.spec.size);
        channels_.ended(*this);
    }

    Channels& channels_;
    datagram::Sender sender_;
    std::uint64_t deadline_ = 0;
    bool asking_ = false;
};

inline void serve(const Spec& spec) {
    need_single(spec);
    datagram::Payload payload(spec);
    Session::Flows flows(payload);
    Server<Session> server(spec);
    server.run(yasio::YCK_UDP_SERVER, [&](auto transport) { return new Session(server.service(), transport, flows); });
}

inline void drive(const Spec& spec) {
    need_single(spec);
    need_end(spec);
    Channels channels(spec, yasio::YCK_UDP_CLIENT);
    for (std::uint32_t i = 0; i < spec.connections; ++i)
        channels.peers.push_back(std::make_unique<Flow>(channels));
    channels.run(std::chrono::milliseconds(datagram::repeat_ms));
}

} // namespace over_udp
