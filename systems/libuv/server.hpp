// The server's side: the sessions of both protocols, and a listener on one loop.
#pragma once

#include "connection.hpp"
#include "linerate/http.hpp"

#include <unistd.h>

// State that all connections of a server share.
struct Shared {
    explicit Shared(const linerate::Spec& spec)
        : spec(spec), content(spec.workload == "stream" ? spec.size : 0), answers(spec.layer == "http" ? spec.size : 0) {}
    const linerate::Spec& spec;
    linerate::Content content;
    linerate::http::Answers answers;
};

// It frees itself when it is closed.
struct Tcp : Connection {
    explicit Tcp(const Shared& shared) : Connection(shared.spec), own(linerate::make_server(shared.spec, shared.content)) {}
    linerate::Protocol& protocol() override { return *own; }
    void end(ssize_t) override { close(); }
    void closed() override { delete this; }

    std::unique_ptr<linerate::Protocol> own;
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
        while ((request = linerate::http::parse({data, filled})).state != linerate::http::Request::incomplete) {
            std::string_view bytes = linerate::http::bad_request;
            if (request.state == linerate::http::Request::good) bytes = request.keep ? answers.keep : answers.close;
            if (!send(bytes.data(), bytes.size())) return pause();
            if (!request.keep) return close();
            consume();
        }
    }
    void consume() {
        filled -= request.length;
        std::memmove(data, data + request.length, filled);
    }

    const linerate::http::Answers& answers;
    linerate::http::Request request;
    std::size_t filled = 0;
    char data[linerate::http::buffer];
};

// A listening socket. libuv 1.44 has no flag for SO_REUSEPORT, so it gets a socket that is bound already.
inline int bound_socket(const sockaddr_storage& address, bool shared) {
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
    Server(const Shared& shared, uv_loop_t& loop) : shared_(shared), loop_(loop) {}

    // Listens at `address`, and returns the port.
    std::uint16_t listen(const sockaddr_storage& address, bool reuse) {
        check(uv_tcp_init(&loop_, &listener_), "uv_tcp_init");
        listener_.data = this;
        check(uv_tcp_open(&listener_, bound_socket(address, reuse)), "uv_tcp_open");
        check(uv_listen(reinterpret_cast<uv_stream_t*>(&listener_), linerate::backlog, on_connection), "uv_listen");
        sockaddr_storage bound;
        int length = sizeof bound;
        check(uv_tcp_getsockname(&listener_, reinterpret_cast<sockaddr*>(&bound), &length), "uv_tcp_getsockname");
        return port_of(bound);
    }
    // The loop then ends without connections, even though it listens.
    void unref() { uv_unref(reinterpret_cast<uv_handle_t*>(&listener_)); }
    std::size_t accepted() const { return accepted_; }

private:
    static void on_connection(uv_stream_t* listener, int status) {
        if (status < 0) return; // the peer gave up, or libuv closed the connection for lack of a descriptor
        auto self = static_cast<Server*>(listener->data);
        auto session = new Session(self->shared_);
        check(session->init(&self->loop_, AF_UNSPEC), "uv_tcp_init");
        if (uv_accept(listener, session->stream()) != 0) return session->close();
        uv_tcp_nodelay(&session->tcp, 1);
        session->start();
        ++self->accepted_;
    }

    const Shared& shared_;
    uv_loop_t& loop_;
    uv_tcp_t listener_;
    std::size_t accepted_ = 0;
};
