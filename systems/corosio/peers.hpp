// A client's connections on one thread: they connect before the window opens, each counts for itself, and one coroutine
// watches them all in place of a timer for each operation.
#pragma once

#include "net.hpp"

#include <algorithm>
#include <memory>
#include <netinet/in.h>
#include <sys/socket.h>

struct Peer {
    explicit Peer(corosio::io_context& context) : socket(context) {}

    corosio::tcp_socket socket;
    linerate::Account account;
    std::uint64_t began = 0; // of the operation in flight; 0: none
    bool timed_out = false;
    bool over = false; // for a connection with two operations in flight: both end when it does, and count once

    // Opens the socket at the `turn`-th of the source addresses.
    std::error_code open(const linerate::Spec& spec, std::size_t turn) {
        bool v6 = spec.connect.ip.find(':') != std::string::npos;
        socket.open(v6 ? corosio::tcp::v6() : corosio::tcp::v4());
        socket.set_option(corosio::socket_option::no_delay(true));
        if (spec.sources.empty()) return {};
        // The port is chosen by connect(2), which knows the peer: 64,511 ports for each pair of addresses, not for each source.
        int on = 1;
        setsockopt(socket.native_handle(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
        return socket.bind(endpoint(spec.sources[turn % spec.sources.size()], 0));
    }

    // The operation in flight has failed. `received`: bytes of its answer.
    void fail(std::error_code error, std::size_t received) {
        auto kind = timed_out ? linerate::Kind::timeout
                              : linerate::transfer_kind(error.value(), error == capy::cond::eof, received);
        account.fail(kind, linerate::now_ns());
        began = 0;
    }
};

class Client {
public:
    explicit Client(const linerate::Spec& spec) : spec(spec), window(spec), context(1) {
        for (std::uint32_t i = 0; i < spec.connections; ++i) peers.push_back(std::make_unique<Peer>(context));
    }

    const linerate::Spec& spec;
    linerate::Window window;
    corosio::io_context context;
    std::vector<std::unique_ptr<Peer>> peers; // after the context, so that it goes first

    void spawn(capy::task<> (*begin)(Client&, Peer&), Peer& peer) {
        capy::run_async(context.get_executor())(begin(*this, peer));
    }

    // Connects all peers. False if one could not: it is counted, and there is nothing to measure.
    bool connect_all() {
        window.open();
        for (auto& peer : peers) spawn(connect, *peer);
        context.run();
        context.restart();
        return standing_ == peers.size();
    }

    // Opens the window, has `begin` start, and returns when `running` chains of operations have ended.
    template <class Begin> void run_window(std::size_t running, Begin begin) {
        running_ = running;
        window.open();
        capy::run_async(context.get_executor())(watch(*this));
        begin();
        context.run();
    }
    void ended() {
        if (--running_ == 0) context.stop();
    }
    void done() { window.done(peers); }

private:
    std::size_t running_ = 0, standing_ = 0;

    static capy::task<> connect(Client& client, Peer& peer) {
        auto turn = std::size_t(std::find_if(client.peers.begin(), client.peers.end(), [&](auto& p) { return p.get() == &peer; }) -
                                client.peers.begin());
        auto error = peer.open(client.spec, turn);
        if (!error) {
            auto [refused] = co_await peer.socket.connect(endpoint(client.spec.connect.ip, client.spec.connect.port));
            error = refused;
        }
        if (error) peer.account.fail(linerate::connect_kind(error.value()), linerate::now_ns());
        else ++client.standing_;
    }

    static capy::task<> watch(Client& client) {
        corosio::timer timer(client.context);
        auto quarter = std::chrono::nanoseconds(client.spec.timeout_ns / 4);
        for (;;) {
            timer.expires_after(std::min<std::chrono::nanoseconds>(quarter, std::chrono::seconds(1)));
            co_await timer.wait();
            for (auto& peer : client.peers) {
                if (peer->began == 0 || linerate::now_ns() - peer->began < client.spec.timeout_ns) continue;
                peer->timed_out = true;
                peer->socket.cancel();
            }
        }
    }
};
