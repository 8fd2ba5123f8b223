// The client: each connection belongs to one loop, and each loop to one thread.
#include "linerate/event_loop.hpp"
#include "connection.hpp"

#include <thread>

using namespace linerate;

namespace {

// One connection, or one slot of `crr`.
class Peer : public Connection {
public:
    Peer(const Spec& spec, Client& client, uv_loop_t* loop, std::size_t turn)
        : Connection(spec), spec_(spec), client_(client), crr_(dynamic_cast<CrrClient*>(&client)), loop_(loop), turn_(turn) {
        check(uv_idle_init(loop, &retry_), "uv_idle_init");
        retry_.data = this;
    }

    bool is_established() const { return established_; }
    bool is_slot() const { return crr_ != nullptr; }

    void connect() {
        int status = begin_connect();
        if (status < 0) connected(status);
    }
    // The next operation of a slot.
    void next() {
        if (crr_->begin()) connect();
    }

private:
    int begin_connect() {
        auto to = sockaddr_of(spec_.connect.ip, spec_.connect.port);
        initialised_ = established_ = false;
        int status = init(loop_, to.ss_family);
        if (status < 0) return status;
        initialised_ = true;
        uv_tcp_nodelay(&tcp, 1);
        int fd = -1, on = 1;
        uv_fileno(reinterpret_cast<uv_handle_t*>(&tcp), &fd);
        client_.watched.watch(fd);
        if (!spec_.sources.empty()) {
            // connect(2) then chooses the port: 64,511 ports for each pair of addresses, not for each source.
            setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
            auto from = sockaddr_of(spec_.sources[turn_++ % spec_.sources.size()], 0);
            status = uv_tcp_bind(&tcp, as_sockaddr(from), 0);
            if (status < 0) return status;
        }
        connecting_.data = this;
        return uv_tcp_connect(&connecting_, &tcp, as_sockaddr(to), [](uv_connect_t* request, int status) {
            auto self = static_cast<Peer*>(request->data);
            if (!self->closing()) self->connected(status);
        });
    }
    void connected(int status) {
        established_ = status == 0;
        if (!established_) client_.fail_connect(connect_kind(-status)), drop();
        else if (is_slot()) crr_->connected(), start();
    }
    Protocol& protocol() override { return client_; }
    void end(ssize_t status) override {
        if (closing()) return; // a read and a write may both fail
        if (status != 0) client_.fail(int(-status), status == UV_EOF);
        drop();
    }
    void drop() {
        client_.watched.release();
        if (initialised_) close();
        if (is_slot()) crr_->closed();
        if (initialised_) return;
        // There is no socket. The next operation begins in the loop's next turn.
        auto retry = [](uv_idle_t* idle) { uv_idle_stop(idle), static_cast<Peer*>(idle->data)->next(); };
        if (is_slot()) uv_idle_start(&retry_, retry);
    }
    void closed() override {
        if (is_slot()) next();
    }

    const Spec& spec_;
    Client& client_;
    CrrClient* crr_; // null: not a slot
    uv_loop_t* loop_;
    std::size_t turn_;
    uv_connect_t connecting_;
    uv_idle_t retry_;
    bool initialised_ = false, established_ = false;
};

void run(std::vector<uv_loop_t>& loops) {
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < loops.size(); ++i)
        threads.emplace_back([&loop = loops[i]] { uv_run(&loop, UV_RUN_DEFAULT); });
    uv_run(&loops.front(), UV_RUN_DEFAULT);
    for (auto& each : threads) each.join();
}

} // namespace

void drive_tcp(const Spec& spec) {
    need_protocol(spec, true);
    if (spec.workload == "fanout" && spec.threads > 1)
        throw Unsupported("fanout on several threads: a round spans all connections, and a loop belongs to one thread");
    Clients clients(spec);
    std::vector<uv_loop_t> loops(std::min(spec.threads, spec.connections));
    for (auto& loop : loops) check(uv_loop_init(&loop), "uv_loop_init");
    std::vector<std::unique_ptr<Peer>> peers;
    for (std::size_t i = 0; i < spec.connections; ++i)
        peers.push_back(std::make_unique<Peer>(spec, *clients.all[i], &loops[i % loops.size()], i));
    clients.rounds.wake = [&] {
        for (auto& peer : peers)
            if (peer->is_established()) peer->step();
    };
    auto dog = clients.watch();
    if (spec.workload != "crr") {
        for (auto& peer : peers) peer->connect();
        for (auto& loop : loops) uv_run(&loop, UV_RUN_DEFAULT);
    }
    clients.window.open();
    for (auto& peer : peers) {
        if (peer->is_slot()) peer->next();
        else if (peer->is_established()) peer->start();
    }
    if (spec.workload == "fanout") clients.rounds.begin(now_ns());
    run(loops);
    dog.reset();
    clients.window.done(clients.all);
}
