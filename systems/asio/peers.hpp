// A client's connections: they connect before the window opens, each counts for itself, and one timer watches them all.
#pragma once

#include "net.hpp"

#include <memory>

struct Peer {
    explicit Peer(net::any_io_executor executor) : socket(std::move(executor)) {}

    tcp::socket socket;
    linerate::Account account;
    std::uint64_t began = 0; // of the operation in flight; 0: none
    bool timed_out = false;
    bool over = false; // for a connection with two operations in flight: both end when it does, and count once

    // One operation of `rr` or `churn`, begun at `began`, is back.
    void back(std::size_t length, bool same, std::uint64_t now) {
        if (same) {
            account.succeed(now, length);
            account.latency.record(now - began);
        } else {
            account.fail(linerate::Kind::wrong_content, now);
        }
        began = 0;
    }

    // The operation in flight has failed. `received`: bytes of its answer.
    void fail(error_code error, std::size_t received) {
        auto kind = timed_out ? linerate::Kind::timeout
                              : linerate::transfer_kind(error.value(), error == net::error::eof, received);
        account.fail(kind, linerate::now_ns());
        began = 0;
    }
};

class Client {
public:
    explicit Client(const linerate::Spec& spec) : spec(spec), window(spec), context_(int(spec.threads)), timer_(context_) {
        for (std::uint32_t i = 0; i < spec.connections; ++i)
            peers.push_back(std::make_unique<Peer>(connection_executor(context_, spec.threads)));
    }

    const linerate::Spec& spec;
    linerate::Window window;

    net::io_context& context() { return context_; }

    // Connects all peers. False if one could not: it is counted, and there is nothing to measure.
    bool connect_all() {
        for (std::size_t i = 0; i < peers.size(); ++i) {
            try {
                open(peers[i]->socket, spec, endpoint(spec.connect), i);
                peers[i]->socket.connect(endpoint(spec.connect));
            } catch (const system_error& e) {
                window.open();
                peers[i]->account.fail(linerate::connect_kind(e.code().value()), linerate::now_ns());
                return false;
            }
        }
        return true;
    }

    // Opens the window, has `begin` start every peer on its own executor, and returns when `running` of them have ended.
    template <class Begin> void run_window(std::size_t running, Begin begin) {
        running_ = running;
        window.open();
        watch();
        for (auto& peer : peers) net::post(peer->socket.get_executor(), [begin, &peer = *peer] { begin(peer); });
        run(context_, spec.threads);
    }
    void ended() {
        if (running_.fetch_sub(1) == 1) context_.stop();
    }
    void done() { window.done(peers); }

private:
    net::io_context context_;
    net::steady_timer timer_;
    std::atomic<std::size_t> running_{0};

public:
    std::vector<std::unique_ptr<Peer>> peers; // after the context, so that it goes first

private:
    // One look at all peers now and then, in place of a timer for each operation.
    void watch() {
        auto quarter = std::chrono::nanoseconds(spec.timeout_ns / 4);
        timer_.expires_after(std::min<std::chrono::nanoseconds>(quarter, std::chrono::seconds(1)));
        timer_.async_wait([this](error_code error) {
            if (error) return;
            for (auto& each : peers)
                net::post(each->socket.get_executor(), [this, &peer = *each] {
                    if (peer.began == 0 || linerate::now_ns() - peer.began < spec.timeout_ns) return;
                    peer.timed_out = true;
                    error_code ignored;
                    peer.socket.close(ignored);
                });
            watch();
        });
    }
};
