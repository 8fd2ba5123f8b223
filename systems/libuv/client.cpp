// Clients that send a message and wait until it is back: rr, churn, fanout.
#include "linerate/event_loop.hpp"
#include "peers.hpp"

using namespace linerate;

namespace {

// One message out, and back.
template <class Base> struct Exchange : Base {
    explicit Exchange(const std::string& message) : message(message) {}

    void ask() {
        received = 0;
        this->send(message.data(), message.size());
    }
    uv_buf_t room() override { return uv_buf_init(reply + received, unsigned(sizeof reply - received)); }
    void got(ssize_t length) override {
        if (length < 0) return broken(length);
        received += std::size_t(length);
        // More than was sent cannot be an echo; unasked bytes neither.
        if (received > message.size() || this->began == 0) return wrong();
        if (received < message.size()) return;
        if (std::memcmp(reply, message.data(), received) != 0) return wrong();
        back(now_ns());
    }
    void wrote(int status) override {
        if (status < 0) broken(status);
    }
    void timeout() override { broken(UV_ETIMEDOUT); }

    virtual void back(std::uint64_t now) = 0; // the whole message, unchanged
    virtual void wrong() = 0;
    virtual void broken(ssize_t status) = 0;

    const std::string& message;
    std::size_t received = 0;
    char reply[echo_buffer];
};

struct Rr : Exchange<StandingPeer> {
    Rr(const std::string& message, Window& window) : Exchange(message), window(window) {}
    void begin() override {
        read();
        next(now_ns());
    }
    void next(std::uint64_t now) {
        if (!window.begin(now)) return close();
        began = now;
        ask();
    }
    void back(std::uint64_t now) override {
        account.succeed(now, received);
        account.latency.record(now - began);
        began = 0;
        next(now);
    }
    void wrong() override {
        account.fail(Kind::wrong_content, now_ns());
        began = 0;
        close();
    }
    void broken(ssize_t status) override {
        if (began != 0) fail(status, received);
        close();
    }
    Window& window;
};

struct Churn : Exchange<Peer> {
    Churn(const std::string& message, Client<Churn>& client, std::size_t place)
        : Exchange(message), client(client), place(place), turn(place) {}
    void begin() override { next(); }
    void next() {
        auto now = now_ns();
        if (!client.window.begin(now)) return;
        began = now, timed_out = initialised = stands = false;
        int status = connect(client.loop_of(place), client.spec, turn++);
        if (status < 0) connected(status);
    }
    void connected(int status) override {
        if (status < 0) return end(connect_kind(-status));
        stands = true;
        account.connect.record(now_ns() - began);
        read();
        ask();
    }
    void back(std::uint64_t) override {
        close();
        auto now = now_ns();
        account.succeed(now, received);
        account.latency.record(now - began);
        began = 0;
    }
    void wrong() override { end(Kind::wrong_content); }
    void broken(ssize_t status) override {
        if (timed_out) return end(stands ? Kind::timeout : Kind::connect_timeout);
        end(transfer_kind(int(-status), status == UV_EOF, received));
    }
    void end(Kind kind) {
        if (began != 0) account.fail(kind, now_ns());
        began = 0;
        if (initialised) return close();
        // Not even a socket: the next one is tried from the loop, not from within this one's failure.
        check(uv_idle_init(client.loop_of(place), &retry), "uv_idle_init");
        retry.data = this;
        uv_idle_start(&retry, [](uv_idle_t* idle) {
            uv_close(reinterpret_cast<uv_handle_t*>(idle), [](uv_handle_t* handle) { static_cast<Churn*>(handle->data)->next(); });
        });
    }
    void closed() override { next(); }

    Client<Churn>& client;
    std::size_t place, turn;
    bool stands = false;
    uv_idle_t retry;
};

// Each operation is a round over all peers; the last one back begins the next.
struct Fanout : Exchange<StandingPeer> {
    struct Round {
        Client<Fanout>* client = nullptr;
        std::size_t missing = 0;
        std::uint64_t began = 0;
        bool good = true, failed = false;

        void next(std::uint64_t now) {
            if (failed || !client->window.begin(now)) return end();
            began = now, missing = client->peers.size(), good = true;
            for (auto& peer : client->peers) peer->began = now;
            for (auto& peer : client->peers) peer->ask();
        }
        void back(std::uint64_t now) {
            if (--missing != 0) return;
            auto& account = client->peers.front()->account;
            if (good) {
                account.succeed(now, client->spec.size * client->peers.size());
                account.latency.record(now - began);
            } else if (!failed) {
                account.fail(Kind::wrong_content, now);
            }
            next(now);
        }
        void end() {
            for (auto& peer : client->peers) peer->close();
        }
    };

    Fanout(const std::string& message, Round& round) : Exchange(message), round(round) {}
    void begin() override {
        read();
        if (this == round.client->peers.back().get()) round.next(now_ns());
    }
    void back(std::uint64_t now) override {
        began = 0;
        round.back(now);
    }
    void wrong() override {
        if (began == 0) return;
        round.good = false;
        back(now_ns());
    }
    void broken(ssize_t status) override {
        close();
        if (began == 0) return; // it has answered in this round; the next one will find it gone
        // An operation fails once, however many of its connections do: the first one that did says why.
        if (!round.failed) fail(status, received);
        round.failed = true, round.good = false;
        back(now_ns());
    }
    Round& round;
};

} // namespace

void drive_rr(const Spec& spec) {
    need_message(spec);
    auto message = page(spec.size);
    Client<Rr> client(spec, [&](auto& client, std::size_t) { return std::make_unique<Rr>(message, client.window); });
    if (client.connect_all()) client.run_window();
    client.done();
}

void drive_churn(const Spec& spec) {
    need_message(spec);
    auto message = page(spec.size);
    Client<Churn> client(spec, [&](auto& client, std::size_t i) { return std::make_unique<Churn>(message, client, i); });
    client.run_window();
    client.done();
}

void drive_fanout(const Spec& spec) {
    need_message(spec);
    if (spec.threads > 1) throw Unsupported("fanout on several threads: a round spans all connections, and a loop belongs to one thread");
    auto message = page(spec.size);
    Fanout::Round round;
    Client<Fanout> client(spec, [&](auto&, std::size_t) { return std::make_unique<Fanout>(message, round); });
    round.client = &client;
    if (client.connect_all()) client.run_window();
    client.done();
}
