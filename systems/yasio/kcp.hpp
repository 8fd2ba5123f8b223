// A `stream` over KCP, and what ikcp.c and yasio do not agree on.
#pragma once

#include "linerate/kcp.hpp"
#include "service.hpp"

#include <random>

// yasio's calls of ikcp.c pass through these: the linker's --wrap.
extern "C" {
int __real_ikcp_input(ikcpcb*, const char*, long);
int __wrap_ikcp_input(ikcpcb*, const char*, long);
int __real_ikcp_send(ikcpcb*, const char*, int);
int __wrap_ikcp_send(ikcpcb*, const char*, int);

// A server of yasio has one conversation number for all its peers, which it is told beforehand. Here each client has one of
// its own: a session without a number takes that of its first segment.
int __wrap_ikcp_input(ikcpcb* kcp, const char* segment, long size) {
    constexpr long header = 24;
    if (kcp->conv == 0 && size >= header) kcp->conv = ikcp_getconv(segment);
    return __real_ikcp_input(kcp, segment, size);
}
// yasio wants to know how much was taken, and sends the same for ever if that is nothing. This ikcp.c says 0
// for all of it, newer ones the number.
int __wrap_ikcp_send(ikcpcb* kcp, const char* bytes, int length) {
    int status = __real_ikcp_send(kcp, bytes, length);
    return status == 0 ? length : status;
}
}

namespace over_kcp {

using namespace linerate;

// ikcp_nodelay() makes 10 ms of everything below.
inline constexpr std::uint64_t finest_interval_us = 10'000;
// How often a client looks whether the window has room again, which yasio does not tell: the period of its own speed test.
inline constexpr std::chrono::microseconds look_period(100);

inline void configure(yasio::io_service& io, int channel, const kcp::Setting& setting) {
    io.set_option(yasio::YOPT_C_KCP_NODELAY, channel, setting.nodelay, setting.interval_ms, setting.resend, setting.nc);
    io.set_option(yasio::YOPT_C_KCP_WINDOW_SIZE, channel, setting.window, setting.window);
    io.set_option(yasio::YOPT_C_KCP_MTU, channel, setting.mtu);
    // What ikcp.c sets by itself; yasio sets 30 ms in either case.
    io.set_option(yasio::YOPT_C_KCP_RTO_MIN, channel, setting.nodelay ? 30 : 100);
}

// Stream mode has no option.
inline ikcpcb* machine_of(yasio::transport_handle_t transport) {
    auto kcp = static_cast<yasio::io_transport_kcp*>(transport)->internal_object();
    kcp->stream = 1;
    return kcp;
}

class Session {
public:
    Session(Service& service, yasio::transport_handle_t transport, const Content& content, std::size_t longest)
        : service_(service), transport_(transport), reader_(content, longest) {
        machine_of(transport);
    }

    void packet(std::string_view bytes) {
        reader_.take(bytes.data(), bytes.size());
        if (!reader_.ended || answered_) return;
        answered_ = true;
        auto number = to_wire(reader_.good);
        service_.io.write(transport_, number.data(), number.size());
    }
    void closed(int) {}

private:
    Service& service_;
    yasio::transport_handle_t transport_;
    kcp::Reader reader_;
    bool answered_ = false;
};

class Flow : public Peer {
public:
    Flow(Channels& channels, const kcp::Setting& setting) : channels_(channels), window_(setting.window), writer_(channels.spec, channels.window) {}

    void opened() override {
        kcp_ = machine_of(transport);
        channels_.stands(*this);
    }
    void begin() override {
        heard_ = now_ns();
        next();
    }
    void packet(std::string_view bytes) override {
        answer_.append(bytes);
        if (answer_.size() < 8) return;
        std::array<char, 8> number;
        std::memcpy(number.data(), answer_.data(), number.size());
        account.add_stream(writer_.written, from_wire(number), now_ns());
        channels_.ended(*this);
    }
    void closed(int error) override {
        if (acknowledged_ != 0) fail(error == ECONNREFUSED ? Kind::reset : Kind::failed);
        else fail(connect_kind(error));
    }
    void tick(std::uint64_t now) override {
        if (!kcp_) return;
        if (kcp_->snd_una != acknowledged_) acknowledged_ = kcp_->snd_una, heard_ = now;
        if (now - heard_ >= channels_.spec.timeout_ns) fail(acknowledged_ != 0 ? Kind::timeout : Kind::connect_timeout);
        else next();
    }

private:
    // As much waits as the window takes, and one write more.
    void next() {
        if (writing_ || writer_.ended || ikcp_waitsnd(kcp_) >= window_) return;
        auto& frame = writer_.next();
        writing_ = true;
        channels_.service.io.forward(transport, frame.data(), frame.size(), [this, length = frame.size()](int error, std::size_t) {
            if (error != 0) throw std::runtime_error("ikcp_send refuses a write of " + std::to_string(length) + " bytes");
            writing_ = false;
            next();
        });
    }
    void fail(Kind kind) {
        account.fail(kind, now_ns());
        channels_.ended(*this);
    }

    Channels& channels_;
    int window_;
    kcp::Writer writer_;
    ikcpcb* kcp_ = nullptr;
    std::string answer_;
    std::uint64_t heard_ = 0; // when something was acknowledged last
    IUINT32 acknowledged_ = 0; // segments
    bool writing_ = false;
};

inline void serve(const Spec& spec) {
    kcp::Setting setting(spec, finest_interval_us);
    Content content(spec.size);
    Server<Session> server(spec);
    configure(server.service().io, 0, setting);
    server.run(yasio::YCK_KCP_SERVER, [&](auto transport) { return new Session(server.service(), transport, content, spec.size); });
}

inline void drive(const Spec& spec) {
    kcp::Setting setting(spec, finest_interval_us);
    Direction(spec).need_end(spec);
    Channels channels(spec, yasio::YCK_KCP_CLIENT);
    std::random_device random;
    for (std::uint32_t i = 0; i < spec.connections; ++i) {
        auto channel = int(i);
        IUINT32 conv = 0;
        while (conv == 0) conv = random();
        configure(channels.service.io, channel, setting);
        channels.service.io.set_option(yasio::YOPT_C_KCP_CONV, channel, int(conv));
        channels.peers.push_back(std::make_unique<Flow>(channels, setting));
    }
    channels.run(look_period);
}

} // namespace over_kcp
