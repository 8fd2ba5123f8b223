// A client's connections: each belongs to one loop, and each loop to one thread. They connect before the window opens,
// and each counts for itself.
#pragma once

#include "socket.hpp"

#include <memory>
#include <netinet/in.h>
#include <thread>

struct Peer : Socket {
    linerate::Account account;
    std::uint64_t began = 0; // of the operation in flight; 0: none
    bool timed_out = false;

    // Begins to connect from the `turn`-th source address.
    int connect(uv_loop_t* loop, const linerate::Spec& spec, std::size_t turn) {
        auto to = sockaddr_of(spec.connect.ip, spec.connect.port);
        int status = init(loop, to.ss_family);
        if (status < 0) return status;
        initialised = true;
        uv_tcp_nodelay(&tcp, 1);
        if (!spec.sources.empty()) {
            // The port is chosen by connect(2), which knows the peer: 64,511 ports for each pair of addresses, not for each source.
            int fd = -1, on = 1;
            uv_fileno(reinterpret_cast<uv_handle_t*>(&tcp), &fd);
            setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
            auto from = sockaddr_of(spec.sources[turn % spec.sources.size()], 0);
            status = uv_tcp_bind(&tcp, as_sockaddr(from), 0);
            if (status < 0) return status;
        }
        connecting_.data = this;
        return uv_tcp_connect(&connecting_, &tcp, as_sockaddr(to), [](uv_connect_t* request, int status) {
            auto self = static_cast<Peer*>(request->data);
            if (!self->closing()) self->connected(status);
        });
    }

    // The operation in flight has failed. `received`: bytes of its answer.
    void fail(ssize_t status, std::size_t received) {
        auto kind = timed_out ? linerate::Kind::timeout : linerate::transfer_kind(int(-status), status == UV_EOF, received);
        account.fail(kind, linerate::now_ns());
        began = 0;
    }

    virtual void connected(int status) = 0;
    virtual void begin() = 0;    // the window is open
    virtual void timeout() = 0;  // the operation in flight took too long
    bool initialised = false;

private:
    uv_connect_t connecting_;
};

// A peer that stands before its first operation. If it does not, that is counted, and it takes no part.
struct StandingPeer : Peer {
    bool stands = false;
    void connected(int status) override {
        stands = status == 0;
        if (stands) return;
        account.fail(linerate::connect_kind(-status), linerate::now_ns());
        if (initialised) close();
    }
    void closed() override {}
};

// One thread's loop, its share of the peers, and one timer that watches them all in place of one for each operation.
struct Loop {
    uv_loop_t loop;
    uv_timer_t watch;
    std::vector<Peer*> peers;
    std::uint64_t timeout_ns;

    explicit Loop(std::uint64_t timeout_ns) : timeout_ns(timeout_ns) {
        check(uv_loop_init(&loop), "uv_loop_init");
        check(uv_timer_init(&loop, &watch), "uv_timer_init");
        watch.data = this;
        uv_unref(reinterpret_cast<uv_handle_t*>(&watch)); // the loop ends with its last peer
    }
    Loop(const Loop&) = delete;
    ~Loop() {
        uv_close(reinterpret_cast<uv_handle_t*>(&watch), nullptr);
        uv_run(&loop, UV_RUN_DEFAULT);
        uv_loop_close(&loop);
    }
    void run() {
        std::uint64_t quarter = std::min<std::uint64_t>(timeout_ns / 4, 1'000'000'000) / 1'000'000 + 1;
        uv_timer_start(&watch, [](uv_timer_t* timer) { static_cast<Loop*>(timer->data)->look(); }, quarter, quarter);
        for (auto peer : peers) peer->begin();
        uv_run(&loop, UV_RUN_DEFAULT);
    }
    void look() {
        auto now = linerate::now_ns();
        for (auto peer : peers)
            if (peer->began != 0 && now - peer->began >= timeout_ns) {
                peer->timed_out = true;
                peer->timeout();
            }
    }
};

// All peers and loops of a client.
template <class P> class Client {
public:
    const linerate::Spec& spec;
    linerate::Window window;
    std::vector<std::unique_ptr<P>> peers; // before the loops, which close first
    std::vector<std::unique_ptr<Loop>> loops;

    // `make(*this, i)` makes the i-th peer.
    template <class Make> Client(const linerate::Spec& spec, Make make) : spec(spec), window(spec) {
        auto threads = std::min(spec.threads, spec.connections);
        for (std::uint32_t i = 0; i < threads; ++i) loops.push_back(std::make_unique<Loop>(spec.timeout_ns));
        for (std::uint32_t i = 0; i < spec.connections; ++i) {
            peers.push_back(make(*this, i));
            loops[i % threads]->peers.push_back(peers.back().get());
        }
    }

    uv_loop_t* loop_of(std::size_t peer) { return &loops[peer % loops.size()]->loop; }

    // True if all peers stand.
    bool connect_all() {
        window.open();
        for (std::size_t i = 0; i < peers.size(); ++i) {
            int status = peers[i]->connect(loop_of(i), spec, i);
            if (status < 0) peers[i]->connected(status);
        }
        for (auto& loop : loops) uv_run(&loop->loop, UV_RUN_DEFAULT);
        for (auto& peer : peers)
            if (!peer->stands) return false;
        return true;
    }
    void run_window() {
        window.open();
        std::vector<std::thread> threads;
        for (std::size_t i = 1; i < loops.size(); ++i) threads.emplace_back([&loop = *loops[i]] { loop.run(); });
        loops.front()->run();
        for (auto& each : threads) each.join();
    }
    void done() { window.done(peers); }
};
