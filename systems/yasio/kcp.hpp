// A `stream` over KCP, with two corrections between yasio and ikcp.c.
#pragma once

#include "linerate/kcp.hpp"
#include "service.hpp"

#include <random>

// yasio calls these in place of ikcp.c's functions (the linker's --wrap).
extern "C" {
int __real_ikcp_input(ikcpcb*, const char*, long);
int __wrap_ikcp_input(ikcpcb*, const char*, long);
int __real_ikcp_send(ikcpcb*, const char*, int);
int __wrap_ikcp_send(ikcpcb*, const char*, int);

// A server of yasio has one configured conversation number for all peers. linerate's clients have one each: a session without
// a number takes that of its first segment.
int __wrap_ikcp_input(ikcpcb* kcp, const char* segment, long size) {
    constexpr long header = 24;
    if (kcp->conv == 0 && size >= header) kcp->conv = ikcp_getconv(segment);
    return __real_ikcp_input(kcp, segment, size);
}
// yasio needs the number of bytes taken, and repeats the write for ever if it is 0. This ikcp.c returns 0 on success, newer ones
// the number.
int __wrap_ikcp_send(ikcpcb* kcp, const char* bytes, int length) {
    int status = __real_ikcp_send(kcp, bytes, length);
    return status == 0 ? length : status;
}
}

namespace over_kcp {

using namespace linerate;

// ikcp_nodelay() raises shorter intervals to 10 ms.
inline constexpr std::uint64_t finest_interval_us = 10'000;
// The poll interval of a client that waits for room in the window, which yasio does not report: as in its own speed test.
inline constexpr std::chrono::microseconds look_period(100);

inline void configure(yasio::io_service& io, int channel, const kcp::Setting& setting) {
    io.set_option(yasio::YOPT_C_KCP_NODELAY, channel, setting.nodelay, setting.interval_ms, setting.resend, setting.nc);
    io.set_option(yasio::YOPT_C_KCP_WINDOW_SIZE, channel, setting.window, setting.window);
    io.set_option(yasio::YOPT_C_KCP_MTU, channel, setting.mtu);
    // ikcp.c's own values; yasio sets 30 ms in either case.
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
        service.widen_buffers(static_cast<yasio::io_base*>(transport));
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
    Flow(Channels& channels, const kcp::Setting& setting)
        : channels_(channels), window_(setting.window), writer_(channels.spec, channels.window) {}

    void opened() override {
        kcp_ = machine_of(transport);
        channels_.service.widen_buffers(static_cast<yasio::io_base*>(transport));
        channels_.established(*this);
    }
    void begin() override {
        progress_ = now_ns();
        next();
    }
    void packet(std::string_view bytes) override {
        // Before the server has received the end of the stream, it has no number.
        if (!writer_.ended || ikcp_waitsnd(kcp_) > 0) return fail(Kind::malformed);
        answer_.append(bytes);
        if (answer_.size() < 8) return;
        std::array<char, 8> number;
        std::memcpy(number.data(), answer_.data(), number.size());
        if (from_wire(number) > writer_.written) return fail(Kind::malformed);
        result.add_stream(writer_.written, from_wire(number), channels_.spec.size, now_ns());
        channels_.ended(*this);
    }
    void closed(int error) override {
        if (acknowledged_ != 0) fail(error == ECONNREFUSED ? Kind::reset : Kind::failed);
        else fail(connect_kind(error));
    }
    void tick(std::uint64_t now) override {
        if (!kcp_) return;
        if (kcp_->snd_una != acknowledged_) acknowledged_ = kcp_->snd_una, progress_ = now;
        if (now - progress_ >= channels_.spec.timeout_ns) fail(acknowledged_ != 0 ? Kind::timeout : Kind::connect_timeout);
        else next();
    }

private:
    // KCP's queue is kept one write longer than the window.
    void next() {
        if (writing_ || writer_.ended || ikcp_waitsnd(kcp_) >= window_) return;
        auto& frame = writer_.next();
        writing_ = true;
        auto written = [this, length = frame.size()](int error, std::size_t) {
            if (error != 0) throw std::runtime_error("ikcp_send refused a write of " + std::to_string(length) + " bytes");
            writing_ = false;
            next();
        };
        channels_.service.io.forward(transport, frame.data(), frame.size(), written);
    }
    void fail(Kind kind) {
        result.fail(kind, now_ns());
        channels_.ended(*this);
    }

    Channels& channels_;
    int window_;
    kcp::Writer writer_;
    ikcpcb* kcp_ = nullptr;
    std::string answer_;
    std::uint64_t progress_ = 0; // time of the last acknowledgement
    IUINT32 acknowledged_ = 0; // segments
    bool writing_ = false;
};

inline void serve(const Spec& spec) {
    kcp::Setting setting(spec, finest_interval_us);
    Content content(spec.size);
    Server<Session> server(spec);
    configure(server.service().io, 0, setting);
    auto make = [&](auto transport) { return new Session(server.service(), transport, content, spec.size); };
    server.run(yasio::YCK_KCP_SERVER, make);
}

inline void drive(const Spec& spec) {
    kcp::Setting setting(spec, finest_interval_us);
    need_end(spec);
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
