// Each operation of `fanout` is a round in which every peer has its exchange; the last one back begins the next. How a peer
// is asked is the style's own.
#pragma once

#include "peers.hpp"

class Fanout {
public:
    explicit Fanout(const linerate::Spec& spec)
        : message_(linerate::page(spec.size)), replies_(spec.connections, message_), client_(spec) {}
    virtual ~Fanout() = default;

    void run() {
        // One chain of operations over all peers: it ends once.
        if (client_.connect_all())
            client_.run_window(1, [this](Peer& peer) {
                if (&peer == client_.peers.front().get()) next(linerate::now_ns());
            });
        client_.done();
    }

protected:
    // Begins an exchange of message_ against `reply`, on the peer's own executor, which ends in back().
    virtual void ask(Peer& peer, std::string& reply) = 0;

    void back(Peer& peer, std::string& reply, error_code error, std::size_t received) {
        if (!error && reply != message_) wrong_ = true;
        // An operation fails once, however many of its connections do: the first one that did says why.
        if (error && !failed_.exchange(true)) peer.fail(error, received);
        peer.began = 0;
        if (missing_.fetch_sub(1) == 1) round_over();
    }

    const std::string message_;

private:
    void next(std::uint64_t now) {
        if (!client_.window.begin(now)) return client_.ended();
        began_ = now;
        missing_ = client_.peers.size();
        for (std::size_t i = 0; i < client_.peers.size(); ++i) {
            auto begin = [this, i, now] {
                client_.peers[i]->began = now;
                ask(*client_.peers[i], replies_[i]);
            };
            net::dispatch(client_.peers[i]->socket.get_executor(), begin);
        }
    }
    void round_over() {
        if (failed_) return client_.ended();
        auto now = linerate::now_ns();
        auto& account = client_.peers.front()->account;
        if (wrong_.exchange(false)) {
            account.fail(linerate::Kind::wrong_content, now);
        } else {
            account.succeed(now, message_.size() * client_.peers.size());
            account.latency.record(now - began_);
        }
        next(now);
    }

    std::vector<std::string> replies_;
    std::uint64_t began_ = 0;
    std::atomic<std::size_t> missing_{0};
    std::atomic<bool> failed_{false}, wrong_{false};
    Client client_; // last, so that its connections go first
};
