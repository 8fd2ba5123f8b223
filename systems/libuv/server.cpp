// Servers: a loop for each thread, each with its own listener (SO_REUSEPORT), since a loop belongs to one thread.
#include "linerate/event_loop.hpp"
#include "socket.hpp"

#include <thread>
#include <unistd.h>

using namespace linerate;

namespace {

// An accepted connection; it frees itself when it is closed.
struct Connection : Socket {
    virtual void start() { read(); }
    void closed() override { delete this; }
};

struct Echo : Connection {
    explicit Echo(const Spec&) {}
    uv_buf_t room() override { return uv_buf_init(data, sizeof data); }
    void got(ssize_t length) override {
        if (length < 0) return close();
        if (!send(data, std::size_t(length))) pause(); // one buffer: nothing is read until it is free
    }
    void wrote(int status) override { status < 0 ? close() : read(); }

    char data[echo_buffer];
};

struct Http : Connection {
    explicit Http(const http::Answers& answers) : answers(answers) {}
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

// What all connections of a `stream` share.
struct Flow {
    explicit Flow(const Spec& spec) : direction(spec), size(spec.size), content(spec.size) {}
    Direction direction;
    std::size_t size;
    Content content;
};

struct Stream : Connection {
    explicit Stream(const Flow& flow)
        : flow(flow), data(flow.size), asked(!flow.direction.client_reads), reading(flow.direction.client_writes),
          writing(flow.direction.client_reads) {}

    uv_buf_t room() override {
        if (!asked) return uv_buf_init(number.data() + received, unsigned(number.size() - received));
        return uv_buf_init(data.data(), unsigned(data.size()));
    }
    void got(ssize_t length) override {
        if (!asked) return got_number(length);
        if (length == UV_EOF) {
            pause();
            reading = false;
            return finish();
        }
        if (length < 0) return close();
        good += flow.content.good(received, data.data(), std::size_t(length));
        received += std::size_t(length);
    }
    void got_number(ssize_t length) {
        if (length < 0) return close();
        received += std::size_t(length);
        if (received < number.size()) return;
        wanted = from_wire(number), received = 0, asked = true;
        if (!reading) pause();
        next();
    }
    void next() {
        if (sent == wanted) {
            writing = false;
            return finish();
        }
        piece = std::size_t(std::min<std::uint64_t>(flow.size, wanted - sent));
        write(flow.content.at(sent), piece);
    }
    void wrote(int status) override {
        if (status < 0 || counted) return close();
        sent += piece;
        next();
    }
    void finish() {
        if (reading || writing) return;
        if (!flow.direction.client_writes) return close();
        counted = true;
        number = to_wire(good);
        write(number.data(), number.size());
    }

    const Flow& flow;
    std::vector<char> data;
    std::array<char, 8> number;
    bool asked, reading, writing, counted = false;
    std::size_t piece = 0;
    std::uint64_t received = 0, good = 0, sent = 0, wanted = 0;
};

// A listening socket. libuv 1.44 has no flag for SO_REUSEPORT, so it gets a socket that is bound already.
int bound_socket(const sockaddr_storage& address, bool shared) {
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0) throw std::runtime_error("socket: " + std::string(std::strerror(errno)));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (shared) setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (bind(fd, as_sockaddr(address), sizeof address) != 0) throw std::runtime_error("bind: " + std::string(std::strerror(errno)));
    return fd;
}

template <class Session, class Shared> class Server {
public:
    explicit Server(const Shared& shared) : shared_(shared) {}

    // Listens at `address`, and tells which port it got.
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
        if (status < 0) return; // the peer gave up, or there was no descriptor and libuv has turned it away
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

template <class Session, class Shared> void serve(const Spec& spec, const Shared& shared) {
    std::uint16_t port = spec.listen.port;
    std::vector<std::unique_ptr<Server<Session, Shared>>> servers;
    for (std::uint32_t i = 0; i < spec.threads; ++i) {
        servers.push_back(std::make_unique<Server<Session, Shared>>(shared));
        // The others listen at the port that the first one got.
        port = servers.back()->listen(sockaddr_of(spec.listen.ip, port), spec.threads > 1);
    }
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < servers.size(); ++i) threads.emplace_back([&server = *servers[i]] { server.run(); });
    emit_ready(spec.listen.ip, port);
    servers.front()->run();
}

} // namespace

void serve_http(const Spec& spec) { serve<Http>(spec, http::Answers(spec.size)); }
void serve_echo(const Spec& spec) { serve<Echo>(spec, spec); }
void serve_stream(const Spec& spec) { serve<Stream>(spec, Flow(spec)); }
