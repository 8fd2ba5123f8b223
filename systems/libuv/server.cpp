// Servers: a loop for each thread, each with its own listener (SO_REUSEPORT), since a loop belongs to one thread.
#include "linerate/event_loop.hpp"
#include "connection.hpp"

#include <thread>
#include <unistd.h>

using namespace linerate;

namespace {

// State that all connections of a server share.
struct Shared {
    explicit Shared(const Spec& spec)
        : spec(spec), content(spec.workload == "stream" ? spec.size : 0), answers(spec.layer == "http" ? spec.size : 0) {}
    const Spec& spec;
    Content content;
    http::Answers answers;
};

// It frees itself when it is closed.
struct Tcp : Connection {
    explicit Tcp(const Shared& shared) : Connection(shared.spec), own(make_server(shared.spec, shared.content)) {}
    Protocol& protocol() override { return *own; }
    void end(ssize_t) override { close(); }
    void closed() override { delete this; }

    std::unique_ptr<Protocol> own;
};

struct Http : Socket {
    explicit Http(const Shared& shared) : answers(shared.answers) {}
    void start() { read(); }
    void closed() override { delete this; }
    uv_buf_t room() override { return uv_buf_init(data + filled, unsigned(sizeof data - filled)); }
    void got(ssize_t length) override {
        if (length < 0) return close();
        filled += std::size_t(length);
        answer();
    }
    void wrote(int status) override {
        if (status < 0 || !request.keep) return close();
        consume();
        read();
        answer();
    }
    void answer() {
        while ((request = http::parse({data, filled})).state != http::Request::incomplete) {
            std::string_view bytes = http::bad_request;
            if (request.state == http::Request::good) bytes = request.keep ? answers.keep : answers.close;
            if (!send(bytes.data(), bytes.size())) return pause();
            if (!request.keep) return close();
            consume();
        }
    }
    void consume() {
        filled -= request.length;
        std::memmove(data, data + request.length, filled);
    }

    const http::Answers& answers;
    http::Request request;
    std::size_t filled = 0;
    char data[http::buffer];
};

// A listening socket. libuv 1.44 has no flag for SO_REUSEPORT, so it gets a socket that is bound already.
int bound_socket(const sockaddr_storage& address, bool shared) {
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    auto checked = [](bool good, const char* what) {
        if (!good) throw std::runtime_error(what + std::string(": ") + std::strerror(errno));
    };
    checked(fd >= 0, "socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (shared) setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    checked(bind(fd, as_sockaddr(address), sizeof address) == 0, "bind");
    return fd;
}

template <class Session> class Server {
public:
    explicit Server(const Shared& shared) : shared_(shared) {}

    // Listens at `address`, and returns the port.
    std::uint16_t listen(const sockaddr_storage& address, bool reuse) {
        check(uv_loop_init(&loop_), "uv_loop_init");
        check(uv_tcp_init(&loop_, &listener_), "uv_tcp_init");
        listener_.data = this;
        check(uv_tcp_open(&listener_, bound_socket(address, reuse)), "uv_tcp_open");
        check(uv_listen(reinterpret_cast<uv_stream_t*>(&listener_), backlog, on_connection), "uv_listen");
        sockaddr_storage bound;
        int length = sizeof bound;
        check(uv_tcp_getsockname(&listener_, reinterpret_cast<sockaddr*>(&bound), &length), "uv_tcp_getsockname");
        return port_of(bound);
    }
    void run() { uv_run(&loop_, UV_RUN_DEFAULT); }

private:
    static void on_connection(uv_stream_t* listener, int status) {
        if (status < 0) return; // the peer gave up, or libuv closed the connection for lack of a descriptor
        auto self = static_cast<Server*>(listener->data);
        auto session = new Session(self->shared_);
        check(session->init(&self->loop_, AF_UNSPEC), "uv_tcp_init");
        if (uv_accept(listener, session->stream()) != 0) return session->close();
        uv_tcp_nodelay(&session->tcp, 1);
        session->start();
    }

    const Shared& shared_;
    uv_loop_t loop_;
    uv_tcp_t listener_;
};

template <class Session> void serve(const Spec& spec) {
    Shared shared(spec);
    std::uint16_t port = spec.listen.port;
    std::vector<std::unique_ptr<Server<Session>>> servers;
    for (std::uint32_t i = 0; i < spec.threads; ++i) {
        servers.push_back(std::make_unique<Server<Session>>(shared));
        // The others listen at the first one's port.
        port = servers.back()->listen(sockaddr_of(spec.listen.ip, port), spec.threads > 1);
    }
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < servers.size(); ++i) threads.emplace_back([&server = *servers[i]] { server.run(); });
    emit_ready(spec.listen.ip, port);
    servers.front()->run();
}

} // namespace

void serve_http(const Spec& spec) { serve<Http>(spec); }
void serve_tcp(const Spec& spec) { need_protocol(spec, true), serve<Tcp>(spec); }
