// An io_service on the calling thread, a server with a session for each peer, and a client with a channel for each
// connection.
#pragma once

#include "linerate.hpp"
#include "linerate/kcp.hpp"

#include <functional>
#include <memory>
#include <netinet/tcp.h>
#include <yasio/yasio.hpp>

class Service {
public:
    Service(const linerate::Spec& spec, std::size_t channels) : io(int(channels)) {
        if (spec.threads > 1) throw linerate::Unsupported("several threads: an io_service has one");
        // By default its log goes to stdout.
        yasio::inet::print_fn2_t print = [](int level, const char* line) {
            if (level >= yasio::YLOG_W) std::fputs(line, stderr);
        };
        yasio::io_service::init_globals(print);
        io.set_option(yasio::YOPT_S_NO_NEW_THREAD, 1);
        // Received bytes are passed in place, not copied into a packet.
        io.set_option(yasio::YOPT_S_FORWARD_PACKET, 1);
    }

    yasio::io_service io;

    // Runs until io.stop(). Every event is handled at once. By default yasio defers those of connections to the end of the
    // loop's turn, so that a session would open after its first datagram.
    void run(const std::function<void(yasio::io_event&)>& handle) {
        yasio::inet::defer_event_cb_t at_once = [&handle](yasio::inet::event_ptr& event) { return handle(*event), true; };
        io.set_option(yasio::YOPT_S_DEFER_EVENT_CB, &at_once);
        io.start([&handle](yasio::inet::event_ptr&& event) { handle(*event); });
    }
    // Before a TCP connection is used.
    void set_no_delay(yasio::transport_handle_t transport) {
        int on = 1;
        io.set_option(yasio::YOPT_B_SOCKOPT, static_cast<yasio::io_base*>(transport), IPPROTO_TCP, TCP_NODELAY, &on,
                      int(sizeof on));
    }
    // The buffers of every KCP program.
    void widen_buffers(yasio::io_base* socket) {
        auto bytes = linerate::kcp::socket_buffer;
        for (int option : {SO_RCVBUF, SO_SNDBUF})
            io.set_option(yasio::YOPT_B_SOCKOPT, socket, SOL_SOCKET, option, &bytes, int(sizeof bytes));
    }
};

// A Session has: packet(bytes), closed(error) while its socket is still open.
template <class Session> class Server {
public:
    explicit Server(const linerate::Spec& spec) : spec_(spec), service_(spec, 1) {
        if (spec.layer != "tcp" && spec.listen.ip.find(':') != std::string::npos)
            throw linerate::Unsupported("a server of datagrams over IPv6: yasio compares uninitialised bytes of addresses");
    }

    Service& service() { return service_; }

    // Serves at `listen`; `make(transport)` makes the session of a new peer.
    template <class Make> void run(int kind, Make make) {
        auto& io = service_.io;
        io.set_option(yasio::YOPT_C_REMOTE_ENDPOINT, 0, spec_.listen.ip.c_str(), int(spec_.listen.port));
        // yasio makes a socket at the same port for each peer of UDP.
        io.set_option(yasio::YOPT_C_MOD_FLAGS, 0, int(yasio::YCF_REUSEADDR), 0);
        io.open(0, kind);
        service_.run([&](yasio::io_event& event) {
            if (event.passive()) return on_listen(event);
            auto session = event.transport_ud<Session*>();
            switch (event.kind()) {
                case yasio::YEK_ON_OPEN:
                    event.transport_ud(make(event.transport()));
                    break;
                case yasio::YEK_ON_PACKET: {
                    auto bytes = event.packet_view();
                    session->packet({bytes.data(), bytes.size()});
                    break;
                }
                case yasio::YEK_ON_CLOSE:
                    session->closed(event.status());
                    delete session;
            }
        });
    }

private:
    void on_listen(yasio::io_event& event) {
        if (event.status() != 0) throw std::runtime_error(std::string("listen: ") + yasio::io_service::strerror(event.status()));
        auto& socket = *event.source()->socket_;
        auto port = socket.local_endpoint().port();
        // yasio's backlog is a constant of 19. The sockets of UDP's peers are bound to YOPT_C_REMOTE_PORT.
        if (spec_.layer == "tcp") socket.listen(linerate::backlog);
        if (spec_.layer == "kcp") service_.widen_buffers(event.source());
        service_.io.set_option(yasio::YOPT_C_REMOTE_PORT, 0, int(port));
        linerate::emit_ready(spec_.listen.ip, port);
    }

    const linerate::Spec& spec_;
    Service service_;
};

// One connection or flow of a client.
class Peer {
public:
    linerate::Result result;
    yasio::transport_handle_t transport = nullptr;
    bool is_established = false, over = false;

    virtual ~Peer() = default;
    virtual void opened() = 0;                        // its socket is there
    virtual void begin() = 0;                         // the window is open
    virtual void packet(std::string_view bytes) = 0;
    virtual void closed(int error) = 0;
    virtual void tick(std::uint64_t now) = 0;         // each `period` of the client
};

// A client's connections, a channel each.
class Channels {
public:
    Channels(const linerate::Spec& spec, int kind) : spec(spec), window(spec), service(spec, spec.connections), kind_(kind) {}

    const linerate::Spec& spec;
    linerate::Window window;
    Service service;
    std::vector<std::unique_ptr<Peer>> peers;

    // Runs the peers to their ends and prints.
    void run(std::chrono::microseconds period) {
        auto& io = service.io;
        auto timeout_ms = std::min<std::uint64_t>(spec.timeout_ns / 1'000'000, INT32_MAX);
        io.set_option(yasio::YOPT_S_CONNECT_TIMEOUTMS, int(timeout_ms));
        unsettled_ = running_ = peers.size();
        for (std::size_t i = 0; i < peers.size(); ++i) {
            io.set_option(yasio::YOPT_C_REMOTE_ENDPOINT, int(i), spec.connect.ip.c_str(), int(spec.connect.port));
            if (!spec.sources.empty())
                io.set_option(yasio::YOPT_C_LOCAL_HOST, int(i), spec.sources[i % spec.sources.size()].c_str());
            io.open(i, kind_);
        }
        window.open();
        io.schedule(period, [this](yasio::io_service&) {
            auto now = linerate::now_ns();
            for (auto& peer : peers)
                if (!peer->over) peer->tick(now);
            return false; // again
        });
        service.run([this](yasio::io_event& event) { handle(event); });
        window.done(peers);
    }

    void established(Peer& peer) {
        peer.is_established = true, ++established_;
        settle();
    }
    // A peer is over, or could not be established.
    void ended(Peer& peer) {
        peer.over = true;
        if (unsettled_ != 0) {
            if (!peer.is_established) return settle();
            --established_;
        } else {
            if (peer.transport) service.io.close(peer.transport);
            if (--running_ == 0) service.io.stop();
        }
    }

private:
    void handle(yasio::io_event& event) {
        auto& peer = *peers[std::size_t(event.cindex())];
        if (peer.over) return;
        if (event.kind() == yasio::YEK_ON_PACKET) {
            auto bytes = event.packet_view();
            peer.packet({bytes.data(), bytes.size()});
        } else if (event.kind() == yasio::YEK_ON_OPEN && event.status() == 0) {
            peer.transport = event.transport();
            peer.opened();
        } else {
            peer.transport = nullptr;
            peer.closed(event.status());
        }
    }
    // The operations begin when all peers are established, and never if one could not be.
    void settle() {
        if (--unsettled_ != 0) return;
        if (established_ != peers.size()) {
            for (auto& peer : peers) peer->over = true;
            return service.io.stop();
        }
        window.open();
        for (auto& peer : peers) peer->begin();
    }

    int kind_;
    std::size_t unsettled_ = 0, established_ = 0, running_ = 0;
};
