// A TCP handle whose callbacks are member functions.
#pragma once

#include "linerate.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <uv.h>

// Checks the status of a call that fails only in a broken program or kernel.
inline void check(int status, const char* what) {
    if (status < 0) throw std::runtime_error(std::string(what) + ": " + uv_strerror(status));
}

inline sockaddr_storage sockaddr_of(const std::string& ip, std::uint16_t port) {
    sockaddr_storage address{};
    if (uv_ip4_addr(ip.c_str(), port, reinterpret_cast<sockaddr_in*>(&address)) != 0 &&
        uv_ip6_addr(ip.c_str(), port, reinterpret_cast<sockaddr_in6*>(&address)) != 0)
        throw linerate::BadSpec("not an IP address: " + ip);
    return address;
}
inline std::uint16_t port_of(const sockaddr_storage& address) {
    return ntohs(address.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                                              : reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}
inline const sockaddr* as_sockaddr(const sockaddr_storage& address) { return reinterpret_cast<const sockaddr*>(&address); }

// Loops for threads: each belongs to one.
inline std::vector<uv_loop_t> make_loops(std::size_t count) {
    std::vector<uv_loop_t> loops(count);
    for (auto& loop : loops) check(uv_loop_init(&loop), "uv_loop_init");
    return loops;
}
// Runs each loop on a thread, the first one on the calling thread, until they have no work left.
inline void run_loops(std::vector<uv_loop_t>& loops) {
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < loops.size(); ++i)
        threads.emplace_back([&loop = loops[i]] { uv_run(&loop, UV_RUN_DEFAULT); });
    uv_run(&loops.front(), UV_RUN_DEFAULT);
    for (auto& each : threads) each.join();
}

class Socket {
public:
    uv_tcp_t tcp;

    virtual ~Socket() = default;

    uv_stream_t* stream() { return reinterpret_cast<uv_stream_t*>(&tcp); }

    // `family`: AF_INET or AF_INET6 where the descriptor is needed before connect, AF_UNSPEC before accept.
    int init(uv_loop_t* loop, int family) {
        int status = uv_tcp_init_ex(loop, &tcp, unsigned(family));
        tcp.data = this;
        return status;
    }

    void read() {
        int status = uv_read_start(stream(),
            [](uv_handle_t* handle, std::size_t, uv_buf_t* buffer) { *buffer = self(handle)->room(); },
            [](uv_stream_t* stream, ssize_t length, const uv_buf_t*) {
                if (length != 0) self(stream)->got(length); // 0: nothing to read now
            });
        if (status < 0) got(status);
    }
    void pause() { uv_read_stop(stream()); }

    // Sends at once as much as the socket takes: true if that is all. Otherwise the rest is queued, and `wrote` follows.
    // uv_write alone calls back from libuv's queue even after a complete write, which costs a turn of the loop.
    bool send(const char* bytes, std::size_t length) {
        auto buffer = uv_buf_init(const_cast<char*>(bytes), unsigned(length));
        int sent = uv_try_write(stream(), &buffer, 1);
        if (sent == int(length)) return true;
        if (sent > 0) bytes += sent, length -= std::size_t(sent);
        write(bytes, length);
        return false;
    }
    void write(const char* bytes, std::size_t length) {
        auto buffer = uv_buf_init(const_cast<char*>(bytes), unsigned(length));
        request_.data = this;
        int status = uv_write(&request_, stream(), &buffer, 1, [](uv_write_t* request, int status) {
            auto self = static_cast<Socket*>(request->data);
            if (!self->closing()) self->wrote(status);
        });
        if (status < 0) wrote(status);
    }

    // A read and a write may both fail.
    bool closing() { return uv_is_closing(reinterpret_cast<uv_handle_t*>(&tcp)) != 0; }
    void close() {
        auto handle = reinterpret_cast<uv_handle_t*>(&tcp);
        if (!closing()) uv_close(handle, [](uv_handle_t* handle) { self(handle)->closed(); });
    }

protected:
    virtual uv_buf_t room() = 0;          // the buffer for the next read
    virtual void got(ssize_t length) = 0; // bytes in the buffer, or an error: UV_EOF, ...
    virtual void wrote(int status) = 0;
    virtual void closed() = 0;

private:
    template <class Handle> static Socket* self(Handle* handle) { return static_cast<Socket*>(handle->data); }
    uv_write_t request_;
};
