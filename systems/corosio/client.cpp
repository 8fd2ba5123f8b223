// The client: a coroutine for each connection, and a second one that writes where both ends send at once.
#include "linerate/event_loop.hpp"
#include "session.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

using namespace linerate;

namespace {

// Opens the socket at the `turn`-th of the source addresses.
std::error_code open(corosio::tcp_socket& socket, const Spec& spec, std::size_t turn) {
    bool v6 = spec.connect.ip.find(':') != std::string::npos;
    auto refused = error_of([&] { return socket.open(v6 ? corosio::tcp::v6() : corosio::tcp::v4()); });
    if (refused) return refused;
    socket.set_option(corosio::socket_option::no_delay(true));
    if (spec.sources.empty()) return {};
    // connect(2) then chooses the port: 64,511 ports for each pair of addresses, not for each source.
    int on = 1;
    setsockopt(socket.native_handle(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    return socket.bind(endpoint(spec.sources[turn % spec.sources.size()], 0));
}

// Establishes the session's connection; false if it fails, which is counted.
capy::task<bool> connect(SessionPtr session, Client& client, const Spec& spec, std::size_t turn) {
    auto failure = open(session->socket, spec, turn);
    if (!failure) {
        client.watched.watch(session->socket.native_handle());
        auto [error] = co_await session->socket.connect(endpoint(spec.connect.ip, spec.connect.port));
        failure = error;
    }
    if (failure) {
        client.fail_connect(connect_kind(failure.value()));
        client.watched.release();
    }
    co_return !failure;
}

capy::task<> drive_one(SessionPtr session, Client& client) {
    auto error = co_await run_protocol(session);
    if (error) client.fail(error.value(), error == capy::cond::eof);
    client.watched.release();
    session->socket.close();
}

struct Driver {
    Driver(const Spec& spec, corosio::io_context& context)
        : spec(spec), clients(spec), dog(clients.watch()), context(context) {}

    const Spec& spec;
    Clients clients;
    std::unique_ptr<Watchdog> dog;
    corosio::io_context& context;
    std::vector<SessionPtr> sessions; // the established ones
    std::vector<Client*> drivers;     // and their clients

    SessionPtr make_session(std::size_t i) {
        return std::make_shared<Session>(context, corosio::tcp_socket(context), clients.all[i], spec);
    }
    void run(std::uint32_t threads) {
        ::run(context, threads);
        context.restart();
    }
    void done() {
        dog.reset();
        clients.window.done(clients.all);
    }

    static capy::task<> establish(Driver& driver, std::size_t i) {
        auto session = driver.make_session(i);
        auto& client = *driver.clients.all[i];
        if (!co_await connect(session, client, driver.spec, i)) co_return;
        driver.sessions.push_back(session);
        driver.drivers.push_back(&client);
    }
    static capy::task<> crr(Driver& driver, std::size_t i) {
        auto& client = static_cast<CrrClient&>(*driver.clients.all[i]);
        for (auto turn = i; client.begin(); ++turn) {
            auto session = driver.make_session(i);
            if (!co_await connect(session, client, driver.spec, turn)) continue;
            client.connected();
            co_await drive_one(session, client);
            client.closed();
        }
    }
};

} // namespace

void drive_tcp(const Spec& spec) {
    need_protocol(spec, true);
    need_one_thread(spec);
    corosio::io_context context(1);
    drive(spec, context, [] {});
}

void drive(const Spec& spec, corosio::io_context& context, const std::function<void()>& connected) {
    Driver driver(spec, context);
    auto executor = driver.context.get_executor();
    bool is_crr = spec.workload == "crr";
    if (!is_crr) {
        for (std::size_t i = 0; i < spec.connections; ++i) capy::run_async(executor)(Driver::establish(driver, i));
        driver.run(1);
        connected();
    }
    driver.clients.rounds.wake = [&] {
        for (auto& session : driver.sessions) spawn_write(session);
    };
    driver.clients.window.open();
    if (is_crr)
        for (std::size_t i = 0; i < spec.connections; ++i) capy::run_async(executor)(Driver::crr(driver, i));
    for (std::size_t i = 0; i < driver.sessions.size(); ++i)
        capy::run_async(executor)(drive_one(driver.sessions[i], *driver.drivers[i]));
    if (spec.workload == "fanout") driver.clients.rounds.begin(now_ns());
    driver.run(spec.threads);
    driver.done();
}
