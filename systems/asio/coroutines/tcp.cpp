// The workloads on TCP: one coroutine for each connection, and a second one that writes where both ends send at once.
#include "linerate/event_loop.hpp"
#include "connections.hpp"
#include "coroutine.hpp"

using namespace linerate;

namespace {

// A connection with its protocol: the coroutines that use it share it.
struct Session {
    using Setting = ::Setting;
    Session(tcp::socket from, Setting& setting) : socket(std::move(from)), data(read_size(setting.spec)) {}

    Socket socket;
    std::vector<char> data;
    std::shared_ptr<Protocol> protocol;
    bool writing = false;

    void greet(const Spec&) {}
    std::string tls() { return {}; }
    static bool is_end(error_code error) { return error == net::error::eof; }
    void close() {
        error_code ignored;
        socket.close(ignored);
    }
};
using SessionPtr = std::shared_ptr<Session>;

// Writes the protocol's next bytes.
awaitable<error_code> write(SessionPtr session) {
    auto& protocol = *session->protocol;
    session->writing = true;
    for (auto piece = protocol.next(); !piece.empty(); piece = protocol.next()) {
        auto [error, length] = co_await net::async_write(session->socket, net::buffer(piece));
        if (error) co_return error;
    }
    session->writing = false;
    error_code ignored;
    if (protocol.shuts_down()) session->socket.shutdown(tcp::socket::shutdown_send, ignored);
    co_return error_code();
}
// The same beside a coroutine that reads.
void spawn_write(const SessionPtr& session) {
    if (session->protocol->over()) session->close();
    else if (!session->writing) co_spawn(session->socket.get_executor(), write(session), detached);
}

// Runs until the protocol is over at this end, or the connection fails. Closes the connection.
awaitable<error_code> run_protocol(SessionPtr session) {
    auto& protocol = *session->protocol;
    for (error_code failure;;) {
        if (protocol.is_duplex()) spawn_write(session);
        else failure = co_await write(session);
        if (failure || protocol.over()) co_return session->close(), failure;
        auto [error, length] = co_await session->socket.async_read_some(net::buffer(session->data));
        if (!error) protocol.receive({session->data.data(), length});
        else if (!Session::is_end(error) || !protocol.end()) co_return session->close(), error;
    }
}

awaitable<void> serve_one(Socket socket, Setting& setting) {
    auto session = std::make_shared<Session>(std::move(socket), setting);
    session->protocol = make_server(setting.spec, setting.content);
    co_await run_protocol(session);
}

awaitable<void> drive_one(Client& client, SessionPtr session) {
    Connections<Session>::end(client, co_await run_protocol(session));
}

awaitable<void> crr(CrrClient& client, std::shared_ptr<Protocol> protocol, Setting& setting,
                    std::atomic<std::size_t>& turn, net::any_io_executor executor) {
    auto to = endpoint(setting.spec.connect);
    while (client.begin()) {
        auto session = std::make_shared<Session>(tcp::socket(executor), setting);
        session->protocol = protocol;
        error_code refused;
        try {
            open(session->socket, setting.spec, to, turn++);
            client.watched.watch(session->socket.native_handle());
            auto [error] = co_await session->socket.async_connect(to);
            refused = error;
        } catch (const system_error& e) {
            refused = e.code();
        }
        if (refused) {
            client.fail_connect(connect_kind(refused.value()));
            client.watched.release();
            continue;
        }
        client.connected();
        co_await drive_one(client, session);
        client.closed();
    }
}

void drive_crr(const Spec& spec) {
    Setting setting(spec);
    Clients clients(spec);
    auto dog = clients.watch();
    std::atomic<std::size_t> turn{0};
    Loops loops(spec.threads);
    clients.window.open();
    for (auto& each : clients.all) {
        auto executor = loops.next();
        co_spawn(executor, crr(static_cast<CrrClient&>(*each), each, setting, turn, executor), detached);
    }
    loops.run();
    clients.window.done(clients.all);
}

} // namespace

void serve_tcp(const Spec& spec) {
    need_protocol(spec, true);
    Setting setting(spec);
    serve_coroutines(spec, [&](Socket socket) { return serve_one(std::move(socket), setting); });
}

void drive_tcp(const Spec& spec) {
    need_protocol(spec, true);
    if (spec.workload == "crr") return drive_crr(spec);
    Loops loops(spec.threads);
    drive_coroutines(spec, loops, [] {});
}

void loop_tcp(const Spec& spec) {
    need_protocol(spec, true);
    OneLoop both(spec);
    Setting setting(both.server);
    loop_coroutines(both, [&](Socket socket) { return serve_one(std::move(socket), setting); });
}

void drive_coroutines(const Spec& spec, Loops& loops, const std::function<void()>& connected) {
    Connections<Session> connections(spec, [&] { return loops.next(); }, connected);
    auto& clients = connections.clients;
    auto each_session = [&](auto f) {
        for (std::size_t i = 0; i < clients.all.size(); ++i)
            if (connections.transports[i]) f(connections.transports[i], clients.all[i]);
    };
    clients.rounds.wake = [&] {
        each_session([](const SessionPtr& session, auto&) {
            net::dispatch(session->socket.get_executor(), [session] { spawn_write(session); });
        });
    };
    clients.window.open();
    each_session([](const SessionPtr& session, auto& client) {
        session->protocol = client;
        co_spawn(session->socket.get_executor(), drive_one(*client, session), detached);
    });
    if (spec.workload == "fanout") clients.rounds.begin(now_ns());
    loops.run();
    connections.done();
}
