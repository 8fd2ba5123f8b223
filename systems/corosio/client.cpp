// Clients that send a message and wait until it is back: rr, churn, fanout.
#include "linerate/event_loop.hpp"
#include "peers.hpp"

using namespace linerate;

namespace {

struct Back {
    std::error_code error;
    std::size_t received = 0;
};

// Sends the message and waits until all of it is back in `reply`.
capy::task<Back> exchange(corosio::tcp_socket& socket, const std::string& message, std::string& reply) {
    auto [error, written] = co_await capy::write(socket, out(message));
    if (error) co_return Back{error};
    auto [lost, received] = co_await capy::read(socket, in(reply));
    co_return Back{lost, received};
}

// One operation of `rr` or `churn` on a peer has ended; false if its connection is lost.
bool count(Peer& peer, const Back& back, bool same, std::uint64_t now) {
    if (back.error) return peer.fail(back.error, back.received), false;
    if (same) {
        peer.account.succeed(now, back.received);
        peer.account.latency.record(now - peer.began);
    } else {
        peer.account.fail(Kind::wrong_content, now);
    }
    peer.began = 0;
    return true;
}

capy::task<> rr(Client& client, Peer& peer) {
    std::string message = page(client.spec.size), reply(message.size(), '\0');
    for (auto now = now_ns(); client.window.begin(now);) {
        peer.began = now;
        auto back = co_await exchange(peer.socket, message, reply);
        now = now_ns();
        if (!count(peer, back, reply == message, now)) break;
    }
    client.ended();
}

capy::task<> churn(Client& client, Peer& peer, std::size_t turn) {
    auto to = endpoint(client.spec.connect.ip, client.spec.connect.port);
    std::string message = page(client.spec.size), reply(message.size(), '\0');
    for (auto now = now_ns(); client.window.begin(now); now = now_ns()) {
        peer.began = now;
        peer.timed_out = false;
        auto refused = peer.open(client.spec, turn++);
        if (!refused) {
            auto [error] = co_await peer.socket.connect(to);
            refused = error;
        }
        if (refused) {
            peer.account.fail(peer.timed_out ? Kind::connect_timeout : connect_kind(refused.value()), now_ns());
            peer.began = 0;
            peer.socket.close();
            continue;
        }
        peer.account.connect.record(now_ns() - now);
        auto back = co_await exchange(peer.socket, message, reply);
        peer.socket.close();
        count(peer, back, reply == message, now_ns());
    }
    client.ended();
}

// Each operation is a round in which every peer has its exchange; the last one back begins the next.
struct Fanout {
    explicit Fanout(const Spec& spec) : client(spec), message(page(spec.size)), replies(spec.connections, message) {}

    Client client;
    std::string message;
    std::vector<std::string> replies;
    std::uint64_t began = 0;
    std::size_t missing = 0;
    bool failed = false, wrong = false;

    void next(std::uint64_t now) {
        if (!client.window.begin(now)) return client.ended();
        began = now, missing = client.peers.size(), wrong = false;
        for (std::size_t i = 0; i < client.peers.size(); ++i)
            capy::run_async(client.context.get_executor())(ask(*this, *client.peers[i], replies[i]));
    }
    void round_over() {
        if (failed) return client.ended();
        auto now = now_ns();
        auto& account = client.peers.front()->account;
        if (wrong) {
            account.fail(Kind::wrong_content, now);
        } else {
            account.succeed(now, message.size() * client.peers.size());
            account.latency.record(now - began);
        }
        next(now);
    }
    static capy::task<> ask(Fanout& round, Peer& peer, std::string& reply) {
        peer.began = round.began;
        auto back = co_await exchange(peer.socket, round.message, reply);
        round.wrong |= !back.error && reply != round.message;
        // An operation fails once, however many of its connections do: the first one that did says why.
        if (back.error && !round.failed) peer.fail(back.error, back.received);
        round.failed |= bool(back.error);
        peer.began = 0;
        if (--round.missing == 0) round.round_over();
    }
};

} // namespace

void drive_rr(const Spec& spec) {
    need_message(spec);
    need_one_thread(spec);
    Client client(spec);
    if (client.connect_all())
        client.run_window(client.peers.size(), [&] {
            for (auto& peer : client.peers) client.spawn(rr, *peer);
        });
    client.done();
}

void drive_churn(const Spec& spec) {
    need_message(spec);
    need_one_thread(spec);
    Client client(spec);
    client.run_window(client.peers.size(), [&] {
        for (std::size_t i = 0; i < client.peers.size(); ++i)
            capy::run_async(client.context.get_executor())(churn(client, *client.peers[i], i));
    });
    client.done();
}

void drive_fanout(const Spec& spec) {
    need_message(spec);
    need_one_thread(spec);
    Fanout fanout(spec);
    if (fanout.client.connect_all()) fanout.client.run_window(1, [&] { fanout.next(now_ns()); });
    fanout.client.done();
}
