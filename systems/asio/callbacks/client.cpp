// Clients that send a message and wait until it is back: rr, churn, fanout.
#include "linerate/event_loop.hpp"
#include "fanout.hpp"

using namespace linerate;

namespace {

class Rr {
public:
    explicit Rr(const Spec& spec) : client_(spec), message_(page(spec.size)) {
        if (client_.connect_all())
            client_.run_window(client_.peers.size(), [this](Peer& peer) {
                // The reply lives as long as the chain of handlers.
                next(peer, std::make_shared<std::string>(message_.size(), '\0'), now_ns());
            });
        client_.done();
    }

private:
    using Reply = std::shared_ptr<std::string>;

    void next(Peer& peer, Reply reply, std::uint64_t now) {
        if (!client_.window.begin(now)) return client_.ended();
        peer.began = now;
        net::async_write(peer.socket, net::buffer(message_), [this, &peer, reply](error_code error, std::size_t) {
            if (error) return fail(peer, error, 0);
            net::async_read(peer.socket, net::buffer(*reply), [this, &peer, reply](error_code error, std::size_t length) {
                if (error) return fail(peer, error, length);
                auto now = now_ns();
                peer.back(length, *reply == message_, now);
                next(peer, reply, now);
            });
        });
    }
    void fail(Peer& peer, error_code error, std::size_t received) {
        peer.fail(error, received);
        client_.ended();
    }

    Client client_;
    std::string message_;
};

class Churn {
public:
    explicit Churn(const Spec& spec) : client_(spec), to_(endpoint(spec.connect)), message_(page(spec.size)) {
        client_.run_window(client_.peers.size(), [this](Peer& peer) {
            next(peer, std::make_shared<std::string>(message_.size(), '\0'), now_ns());
        });
        client_.done();
    }

private:
    using Reply = std::shared_ptr<std::string>;

    void next(Peer& peer, Reply reply, std::uint64_t now) {
        if (!client_.window.begin(now)) return client_.ended();
        peer.began = now;
        peer.timed_out = false;
        try {
            open(peer.socket, client_.spec, to_, turn_++);
        } catch (const system_error& e) {
            return refused(peer, reply, connect_kind(e.code().value()));
        }
        peer.socket.async_connect(to_, [this, &peer, reply](error_code error) {
            if (error) return refused(peer, reply, peer.timed_out ? Kind::connect_timeout : connect_kind(error.value()));
            peer.account.connect.record(now_ns() - peer.began);
            exchange(peer, reply);
        });
    }
    void exchange(Peer& peer, Reply reply) {
        net::async_write(peer.socket, net::buffer(message_), [this, &peer, reply](error_code error, std::size_t) {
            if (error) return ended(peer, reply, error, 0);
            net::async_read(peer.socket, net::buffer(*reply), [this, &peer, reply](error_code error, std::size_t length) {
                ended(peer, reply, error, length);
            });
        });
    }
    void ended(Peer& peer, Reply reply, error_code error, std::size_t received) {
        if (error) {
            peer.fail(error, received);
        } else if (*reply != message_) {
            peer.account.fail(Kind::wrong_content, now_ns());
        } else {
            error_code ignored;
            peer.socket.close(ignored);
            auto now = now_ns();
            peer.account.succeed(now, received);
            peer.account.latency.record(now - peer.began);
        }
        again(peer, reply);
    }
    void refused(Peer& peer, Reply reply, Kind kind) {
        peer.account.fail(kind, now_ns());
        again(peer, reply);
    }
    // By way of the queue: a connection that fails at once must not go deeper and deeper.
    void again(Peer& peer, Reply reply) {
        peer.began = 0;
        error_code ignored;
        peer.socket.close(ignored);
        net::post(peer.socket.get_executor(), [this, &peer, reply] { next(peer, reply, now_ns()); });
    }

    Client client_;
    tcp::endpoint to_;
    std::string message_;
    std::atomic<std::size_t> turn_{0};
};

struct AskAll : Fanout {
    using Fanout::Fanout;
    void ask(Peer& peer, std::string& reply) override {
        net::async_write(peer.socket, net::buffer(message_), [this, &peer, &reply](error_code error, std::size_t) {
            if (error) return back(peer, reply, error, 0);
            net::async_read(peer.socket, net::buffer(reply), [this, &peer, &reply](error_code error, std::size_t length) {
                back(peer, reply, error, length);
            });
        });
    }
};

} // namespace

void drive_rr(const Spec& spec) { need_message(spec), Rr{spec}; }
void drive_churn(const Spec& spec) { need_message(spec), Churn{spec}; }
void drive_fanout(const Spec& spec) { need_message(spec), AskAll(spec).run(); }
