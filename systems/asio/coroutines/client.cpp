// Clients that send a message and wait until it is back: rr, churn, fanout.
#include "linerate/event_loop.hpp"
#include "coroutine.hpp"
#include "fanout.hpp"

using namespace linerate;

namespace {

// Sends the message and waits until all of it is back in `reply`; the error, and how many bytes came.
awaitable<std::tuple<error_code, std::size_t>> exchange(tcp::socket& socket, const std::string& message, std::string& reply) {
    auto [error, written] = co_await net::async_write(socket, net::buffer(message), Token());
    if (error) co_return std::tuple(error, std::size_t(0));
    co_return co_await net::async_read(socket, net::buffer(reply), Token());
}

// One operation of `rr` or `churn` on a peer has ended; false if its connection is lost.
bool count(Peer& peer, error_code error, std::size_t received, bool same, std::uint64_t now) {
    if (error) return peer.fail(error, received), false;
    return peer.back(received, same, now), true;
}

awaitable<void> rr(Client& client, Peer& peer, const std::string& message) {
    std::string reply(message.size(), '\0');
    for (auto now = now_ns(); client.window.begin(now);) {
        peer.began = now;
        auto [error, received] = co_await exchange(peer.socket, message, reply);
        now = now_ns();
        if (!count(peer, error, received, reply == message, now)) break;
    }
    client.ended();
}

awaitable<void> churn(Client& client, Peer& peer, const std::string& message, std::atomic<std::size_t>& turn) {
    auto to = endpoint(client.spec.connect);
    std::string reply(message.size(), '\0');
    for (auto now = now_ns(); client.window.begin(now); now = now_ns()) {
        peer.began = now;
        peer.timed_out = false;
        error_code refused;
        try {
            open(peer.socket, client.spec, to, turn++);
            auto [error] = co_await peer.socket.async_connect(to, Token());
            refused = error;
        } catch (const system_error& e) {
            refused = e.code();
        }
        error_code ignored;
        if (refused) {
            peer.account.fail(peer.timed_out ? Kind::connect_timeout : connect_kind(refused.value()), now_ns());
            peer.began = 0;
            peer.socket.close(ignored);
            continue;
        }
        peer.account.connect.record(now_ns() - now);
        auto [error, received] = co_await exchange(peer.socket, message, reply);
        peer.socket.close(ignored);
        count(peer, error, received, reply == message, now_ns());
    }
    client.ended();
}

struct AskAll : Fanout {
    using Fanout::Fanout;
    void ask(Peer& peer, std::string& reply) override { co_spawn(peer.socket.get_executor(), exchange_with(peer, reply), detached); }
    awaitable<void> exchange_with(Peer& peer, std::string& reply) {
        auto [error, received] = co_await exchange(peer.socket, message_, reply);
        back(peer, reply, error, received);
    }
};

} // namespace

void drive_rr(const Spec& spec) {
    need_message(spec);
    auto message = page(spec.size);
    Client client(spec);
    if (client.connect_all())
        client.run_window(client.peers.size(), [&](Peer& peer) {
            co_spawn(peer.socket.get_executor(), rr(client, peer, message), detached);
        });
    client.done();
}

void drive_churn(const Spec& spec) {
    need_message(spec);
    auto message = page(spec.size);
    std::atomic<std::size_t> turn{0};
    Client client(spec);
    client.run_window(client.peers.size(), [&](Peer& peer) {
        co_spawn(peer.socket.get_executor(), churn(client, peer, message, turn), detached);
    });
    client.done();
}

void drive_fanout(const Spec& spec) { need_message(spec), AskAll(spec).run(); }
