// NAME as a system of linerate (sdk/CONTRACT.md). This skeleton runs `rr` and `stream` with blocking sockets and a thread for
// each connection. Replace Socket with the library under test.
#define LINERATE_IMPLEMENTATION
#include <linerate.hpp>
#include <linerate/protocol_spec.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace linerate;

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what + ": " + std::strerror(errno)); }

sockaddr_in to_sockaddr(const Address& address) {
    sockaddr_in to{};
    to.sin_family = AF_INET, to.sin_port = htons(address.port);
    if (inet_pton(AF_INET, address.ip.c_str(), &to.sin_addr) != 1) throw BadSpec(address.ip + " is not an IPv4 address");
    return to;
}

struct Socket {
    explicit Socket(int fd) : fd(fd) {
        if (fd < 0) fail("socket");
        int yes = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    }
    Socket(const Socket&) = delete;
    ~Socket() { close(fd); }
    const int fd;
};

bool send_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes.remove_prefix(std::size_t(sent));
    }
    return true;
}

// Runs until the protocol is over at this end (true), or the connection fails. `received`: the last recv(2).
bool run(int fd, Protocol& protocol, const Spec& spec, ssize_t& received) {
    std::vector<char> buffer(read_size(spec));
    for (received = -1;;) {
        for (auto piece = protocol.next(); !piece.empty(); piece = protocol.next())
            if (!send_all(fd, piece)) return false;
        if (protocol.over()) return true;
        if (protocol.shuts_down()) shutdown(fd, SHUT_WR);
        received = recv(fd, buffer.data(), buffer.size(), 0);
        if (received > 0) protocol.receive({buffer.data(), std::size_t(received)});
        else if (received < 0 || !protocol.end()) return false;
    }
}

// A peer that vanishes ends its own thread only.
void serve_one(int fd, const Spec& spec, const Content& content) {
    Socket socket(fd);
    ssize_t received;
    run(fd, *make_server(spec, content), spec, received);
}

void serve(const Spec& spec) {
    need_protocol(spec, false);
    Content content(spec.workload == "stream" ? spec.size : 0);
    Socket listener(socket(AF_INET, SOCK_STREAM, 0));
    auto at = to_sockaddr(spec.listen);
    socklen_t length = sizeof at;
    int yes = 1;
    setsockopt(listener.fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener.fd, reinterpret_cast<sockaddr*>(&at), length) != 0) fail("bind");
    if (listen(listener.fd, backlog) != 0) fail("listen");
    getsockname(listener.fd, reinterpret_cast<sockaddr*>(&at), &length);
    emit_ready(spec.listen.ip, ntohs(at.sin_port));
    for (;;) {
        int fd = accept(listener.fd, nullptr, nullptr);
        if (fd >= 0) std::thread(serve_one, fd, std::cref(spec), std::cref(content)).detach();
    }
}

void drive(const Spec& spec) {
    need_protocol(spec, false);
    Clients clients(spec);
    auto dog = clients.watch();
    auto to = to_sockaddr(spec.connect);
    std::vector<std::unique_ptr<Socket>> sockets; // null: not established, which is counted
    for (auto& client : clients.all) {
        sockets.push_back(std::make_unique<Socket>(socket(AF_INET, SOCK_STREAM, 0)));
        client->watched.watch(sockets.back()->fd);
        if (connect(sockets.back()->fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) continue;
        client->fail_connect(connect_kind(errno));
        client->watched.release();
        sockets.back().reset();
    }
    clients.window.open();
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < sockets.size(); ++i)
        if (sockets[i])
            threads.emplace_back([&spec, &client = *clients.all[i], fd = sockets[i]->fd] {
                ssize_t received;
                if (!run(fd, client, spec, received)) client.fail(errno, received == 0);
                client.watched.release();
            });
    for (auto& thread : threads) thread.join();
    clients.window.done(clients.all);
}

} // namespace

int main(int argc, char** argv) {
    // The version is that of the library under test: read it from the library.
    return start(argc, argv, {"NAME", "0.1.0", both_ends("tcp", {"rr", "stream"}, serve, drive)});
}
