// The client: each connection belongs to one loop, and each loop to one thread.
#include "linerate/event_loop.hpp"
#include "server.hpp"

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
    bool is_connecting() const { return waits_; }
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
        initialised_ = established_ = false, waits_ = true;
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
        established_ = status == 0, waits_ = false;
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
    bool initialised_ = false, established_ = false, waits_ = false;
};

// The server in its client's loops: each has a listener of its own, since a session belongs to one loop.
template <class Session> class Beside {
public:
    Beside(const Spec& spec, std::vector<uv_loop_t>& loops) : spec_(spec), shared_(spec_) {
        spec_.role = "server";
        for (auto& loop : loops) {
            servers_.push_back(std::make_unique<Server<Session>>(shared_, loop));
            ports.push_back(servers_.back()->listen(sockaddr_of("127.0.0.1", 0), false));
            servers_.back()->unref();
        }
    }
    std::size_t accepted() const {
        std::size_t sum = 0;
        for (auto& server : servers_) sum += server->accepted();
        return sum;
    }

    std::vector<std::uint16_t> ports;

private:
    Spec spec_;
    Shared shared_;
    std::vector<std::unique_ptr<Server<Session>>> servers_;
};

// `specs`: of the connections of each loop. `accepted`: the connections that a server in these loops has accepted.
void drive(const Spec& spec, std::vector<uv_loop_t>& loops, const std::vector<Spec>& specs,
           const std::function<std::size_t()>& accepted) {
    Clients clients(spec);
    std::vector<std::unique_ptr<Peer>> peers;
    for (std::size_t i = 0; i < spec.connections; ++i)
        peers.push_back(std::make_unique<Peer>(specs[i % specs.size()], *clients.all[i], &loops[i % loops.size()], i));
    clients.rounds.wake = [&] {
        for (auto& peer : peers)
            if (peer->is_established()) peer->step();
    };
    auto dog = clients.watch();
    if (spec.workload != "crr") {
        for (auto& peer : peers) peer->connect();
        auto is_waiting = [&] {
            std::size_t established = 0;
            for (auto& peer : peers) {
                if (peer->is_connecting()) return true;
                established += peer->is_established();
            }
            return accepted() < established;
        };
        if (!accepted) {
            for (auto& loop : loops) uv_run(&loop, UV_RUN_DEFAULT);
        } else {
            while (is_waiting())
                for (auto& loop : loops) uv_run(&loop, UV_RUN_NOWAIT);
        }
    }
    clients.window.open();
    for (auto& peer : peers) {
        if (peer->is_slot()) peer->next();
        else if (peer->is_established()) peer->start();
    }
    if (spec.workload == "fanout") clients.rounds.begin(now_ns());
    run_loops(loops);
    dog.reset();
    clients.window.done(clients.all);
}

template <class Session> void loop(const Spec& spec) {
    need_protocol(spec, true);
    auto loops = make_loops(std::min(spec.threads, spec.connections));
    Beside<Session> server(spec, loops);
    std::vector<Spec> specs(loops.size(), spec);
    for (std::size_t i = 0; i < specs.size(); ++i) specs[i].connect = {"127.0.0.1", server.ports[i]};
    drive(spec, loops, specs, [&] { return server.accepted(); });
}

} // namespace

void drive_tcp(const Spec& spec) {
    need_protocol(spec, true);
    if (spec.workload == "fanout" && spec.threads > 1)
        throw Unsupported("fanout on several threads: a round spans all connections, and a loop belongs to one thread");
    auto loops = make_loops(std::min(spec.threads, spec.connections));
    drive(spec, loops, {spec}, {});
}

void loop_tcp(const Spec& spec) { loop<Tcp>(spec); }
void loop_http(const Spec& spec) { loop<Http>(spec); }
