// One KCP conversation: ikcp.c behind member functions, and the output of its datagrams.
#pragma once

#include "linerate.hpp"
#include "linerate/kcp.hpp"

#include <arpa/inet.h>
#include <ikcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

// ikcp.c has no version number; this is the release of the package that carries it.
#define IKCP_VERSION "of kcp 0.1.6 (PyPI)"

// ikcp_nodelay() raises shorter intervals to 10 ms.
inline constexpr std::uint64_t finest_interval_us = 10'000;

// KCP's clock: milliseconds that wrap.
inline IUINT32 now_ms() { return IUINT32(linerate::now_ns() / 1'000'000); }

inline sockaddr_storage sockaddr_of(const std::string& ip, std::uint16_t port) {
    sockaddr_storage address{};
    auto v4 = reinterpret_cast<sockaddr_in*>(&address);
    auto v6 = reinterpret_cast<sockaddr_in6*>(&address);
    if (inet_pton(AF_INET, ip.c_str(), &v4->sin_addr) == 1) v4->sin_family = AF_INET, v4->sin_port = htons(port);
    else if (inet_pton(AF_INET6, ip.c_str(), &v6->sin6_addr) == 1) v6->sin6_family = AF_INET6, v6->sin6_port = htons(port);
    else throw linerate::BadSpec("not an IP address: " + ip);
    return address;
}
inline socklen_t length_of(const sockaddr_storage& address) {
    return address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}
[[noreturn]] inline void fail(const char* what) { throw std::runtime_error(std::string(what) + ": " + std::strerror(errno)); }

// A UDP socket bound to `ip`.
inline int bound_socket(const std::string& ip, std::uint16_t port) {
    auto address = sockaddr_of(ip, port);
    int fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) fail("socket");
    for (int option : {SO_RCVBUF, SO_SNDBUF})
        if (setsockopt(fd, SOL_SOCKET, option, &linerate::kcp::socket_buffer, sizeof(int)) != 0) fail("setsockopt");
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), length_of(address)) != 0) fail("bind");
    return fd;
}

class Machine {
public:
    // `to`: the peer; an empty family if the socket is connected.
    Machine(IUINT32 conv, int fd, const sockaddr_storage& to, const linerate::kcp::Setting& setting)
        : fd_(fd), to_(to), kcp_(ikcp_create(conv, this)) {
        kcp_->output = [](const char* bytes, int length, ikcpcb*, void* self) {
            return static_cast<Machine*>(self)->output(bytes, length);
        };
        kcp_->stream = 1;
        ikcp_setmtu(kcp_, setting.mtu);
        ikcp_wndsize(kcp_, setting.window, setting.window);
        ikcp_nodelay(kcp_, setting.nodelay, setting.interval_ms, setting.resend, setting.nc);
    }
    Machine(const Machine&) = delete;
    ~Machine() { ikcp_release(kcp_); }

    bool refused = false; // an ICMP error arrived

    bool input(const char* datagram, std::size_t length) { return ikcp_input(kcp_, datagram, long(length)) == 0; }
    int receive(char* buffer, std::size_t room) { return ikcp_recv(kcp_, buffer, int(room)); }
    void send(const std::string& bytes) {
        if (ikcp_send(kcp_, bytes.data(), int(bytes.size())) < 0)
            throw std::runtime_error("ikcp_send refused a write of " + std::to_string(bytes.size()) + " bytes");
    }
    int waiting() const { return ikcp_waitsnd(kcp_); }
    // The time until the next ikcp_update(), in milliseconds from `now`.
    int due_in(IUINT32 now) const { return int(ikcp_check(kcp_, now) - now); }
    // Sends acknowledgements and segments at once, not only at the next interval.
    void flush(IUINT32 now) {
        bool flushes = due_in(now) == 0;
        ikcp_update(kcp_, now);
        if (!flushes) ikcp_flush(kcp_);
    }

private:
    int output(const char* bytes, int length) {
        auto to = to_.ss_family == AF_UNSPEC ? nullptr : reinterpret_cast<const sockaddr*>(&to_);
        // A datagram that the kernel does not take is lost, like one lost on the path.
        if (sendto(fd_, bytes, std::size_t(length), 0, to, to ? length_of(to_) : 0) < 0) refused |= errno == ECONNREFUSED;
        return 0;
    }

    int fd_;
    sockaddr_storage to_;
    ikcpcb* kcp_;
};
