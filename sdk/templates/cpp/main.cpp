// NAME as a system of linerate (sdk/CONTRACT.md). This skeleton does `rr` with a thread for each connection and blocking
// sockets: put the library under test in the place of `serve` and `drive`.
#define LINERATE_IMPLEMENTATION
#include <linerate.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <thread>
#include <unistd.h>

namespace {

using linerate::Kind;

// A socket that is closed when nobody needs it any more.
struct Socket {
    int fd;
    explicit Socket(int fd) : fd(fd) {}
    Socket(Socket&& other) noexcept : fd(other.fd) { other.fd = -1; }
    Socket(const Socket&) = delete;
    ~Socket() {
        if (fd >= 0) close(fd);
    }
};

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what + ": " + std::strerror(errno)); }

sockaddr_in to_sockaddr(const linerate::Address& address) {
    sockaddr_in to{};
    to.sin_family = AF_INET, to.sin_port = htons(address.port);
    if (inet_pton(AF_INET, address.ip.c_str(), &to.sin_addr) != 1) throw linerate::BadSpec(address.ip + " is not an IPv4 address");
    return to;
}

void set(int fd, int level, int option) {
    int yes = 1;
    if (setsockopt(fd, level, option, &yes, sizeof yes) != 0) fail("setsockopt");
}

bool send_all(int fd, const char* bytes, std::size_t length) {
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes += sent, length -= std::size_t(sent);
    }
    return true;
}

// Sends back what it receives. A peer that vanishes ends its own thread and nothing else.
void echo(Socket socket) {
    std::vector<char> buffer(linerate::echo_buffer);
    ssize_t length;
    while ((length = recv(socket.fd, buffer.data(), buffer.size(), 0)) > 0)
        if (!send_all(socket.fd, buffer.data(), std::size_t(length))) return;
}

void serve(const linerate::Spec& spec) {
    Socket listener(socket(AF_INET, SOCK_STREAM, 0));
    auto at = to_sockaddr(spec.listen);
    socklen_t length = sizeof at;
    set(listener.fd, SOL_SOCKET, SO_REUSEADDR);
    if (bind(listener.fd, reinterpret_cast<sockaddr*>(&at), length) != 0) fail("bind");
    if (listen(listener.fd, linerate::backlog) != 0) fail("listen");
    getsockname(listener.fd, reinterpret_cast<sockaddr*>(&at), &length);
    linerate::emit_ready(spec.listen.ip, ntohs(at.sin_port));
    for (;;) {
        int fd = accept(listener.fd, nullptr, nullptr);
        if (fd < 0) continue;
        set(fd, IPPROTO_TCP, TCP_NODELAY);
        std::thread(echo, Socket(fd)).detach();
    }
}

// A connection of the client, and what it counted.
struct Connection {
    Socket socket;
    linerate::Account account;
};

// Send, wait until all of it is back, compare, repeat.
void exchange(Connection& connection, const std::string& message, linerate::Window& window) {
    std::string answer(message.size(), '\0');
    for (std::uint64_t start = linerate::now_ns(); window.begin(start); start = linerate::now_ns()) {
        ssize_t got = -1;
        std::size_t received = 0;
        if (send_all(connection.socket.fd, message.data(), message.size()))
            while (received < answer.size() && (got = recv(connection.socket.fd, &answer[received], answer.size() - received, 0)) > 0)
                received += std::size_t(got);
        std::uint64_t now = linerate::now_ns();
        if (received < answer.size()) {
            bool late = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
            connection.account.fail(late ? Kind::timeout : linerate::transfer_kind(errno, got == 0, received), now);
            return; // a connection that failed once is over; the operations left to it are the others'
        }
        if (answer == message) {
            connection.account.succeed(now, message.size());
            connection.account.latency.record(now - start);
        } else {
            connection.account.fail(Kind::wrong_content, now);
        }
    }
}

Connection connect_to(const linerate::Spec& spec) {
    Connection connection{Socket(socket(AF_INET, SOCK_STREAM, 0)), {}};
    auto to = to_sockaddr(spec.connect);
    if (connect(connection.socket.fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) fail("connect");
    set(connection.socket.fd, IPPROTO_TCP, TCP_NODELAY);
    timeval patience{time_t(spec.timeout_ns / 1'000'000'000), suseconds_t(spec.timeout_ns / 1'000 % 1'000'000)};
    setsockopt(connection.socket.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return connection;
}

void drive(const linerate::Spec& spec) {
    linerate::need_message(spec);
    const std::string message = linerate::page(spec.size);
    linerate::Window window(spec);
    std::vector<std::unique_ptr<Connection>> connections;
    for (std::uint32_t i = 0; i < spec.connections; ++i)
        connections.push_back(std::make_unique<Connection>(connect_to(spec)));
    window.open();
    std::vector<std::thread> threads;
    for (auto& each : connections) threads.emplace_back([&] { exchange(*each, message, window); });
    for (auto& thread : threads) thread.join();
    window.done(connections);
}

} // namespace

int main(int argc, char** argv) {
    // The version is that of the library under test: ask it.
    return linerate::start(argc, argv, {"NAME", "0.1.0", {
        {"server", "tcp", "rr", serve},
        {"client", "tcp", "rr", drive},
    }});
}
