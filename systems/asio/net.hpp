// Boost.Asio and standalone Asio under one name, and functions that all programs here share: listen, accept,
// open a client's socket, run a context on several threads.
#pragma once

#include <utility> // Asio before 1.24 needs it in C++20 and does not include it

#ifdef LINERATE_STANDALONE
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ip/udp.hpp>
#include <asio/dispatch.hpp>
#include <asio/post.hpp>
#include <asio/read.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#include <asio/write.hpp>
namespace net = asio;
using error_code = asio::error_code;
using system_error = std::system_error;
#else
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
namespace net = boost::asio;
using error_code = boost::system::error_code;
using system_error = boost::system::system_error;
#endif

#include "linerate.hpp"
#include <functional>
#include <memory>
#include <netinet/in.h>
#include <thread>

using tcp = net::ip::tcp;
using udp = net::ip::udp;

// The executor of sockets: Asio's default, or with LINERATE_CONCRETE the one of an io_context.
#ifdef LINERATE_CONCRETE
using Executor = net::io_context::executor_type;
#else
using Executor = net::any_io_executor;
#endif
using TcpSocket = net::basic_stream_socket<tcp, Executor>;

// The event loops of a program: an io_context that all threads run, as in Asio's example HTTP server 3; or with
// LINERATE_POOL one for each thread, as in HTTP server 2.
class Loops {
public:
    explicit Loops(std::uint32_t threads) : threads_(threads) {
#ifdef LINERATE_POOL
        for (std::uint32_t i = 0; i < threads; ++i) contexts_.push_back(std::make_unique<net::io_context>(1));
#else
        contexts_.push_back(std::make_unique<net::io_context>(int(threads)));
#endif
    }

    // The loop of a listener, or of a program's only socket.
    net::io_context& first() { return *contexts_.front(); }

    // The executor of one more connection's handlers: where several threads run its loop a strand.
    Executor next() {
        auto& context = *contexts_[turn_++ % contexts_.size()];
#ifndef LINERATE_POOL
        if (threads_ > 1) return net::make_strand(context);
#endif
        return context.get_executor();
    }

    // Runs the loops on all threads, the calling one included, until they have no work left.
    void run() {
        std::vector<std::thread> others;
        for (std::uint32_t i = 1; i < threads_; ++i)
            others.emplace_back([&context = *contexts_[i % contexts_.size()]] { context.run(); });
        first().run();
        for (auto& each : others) each.join();
    }

    // The same for ever: a loop without a connection waits for one.
    void run_for_ever() {
        std::vector<net::executor_work_guard<net::io_context::executor_type>> guards;
        for (auto& each : contexts_) guards.push_back(net::make_work_guard(*each));
        run();
    }

private:
    std::uint32_t threads_;
    std::size_t turn_ = 0;
    std::vector<std::unique_ptr<net::io_context>> contexts_;
};

template <class Protocol = tcp> typename Protocol::endpoint endpoint(const linerate::Address& address) {
    return {net::ip::make_address(address.ip), address.port};
}

inline tcp::acceptor open_listener(net::io_context& context, const tcp::endpoint& where) {
    tcp::acceptor acceptor(context);
    acceptor.open(where.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(where);
    acceptor.listen(linerate::backlog);
    return acceptor;
}

// Listens, and prints `ready`.
inline tcp::acceptor listen(net::io_context& context, const linerate::Spec& spec) {
    auto acceptor = open_listener(context, endpoint(spec.listen));
    linerate::emit_ready(spec.listen.ip, acceptor.local_endpoint().port());
    return acceptor;
}

// The pause of a listener after a failed accept(2): there is no descriptor for a waiting connection.
inline constexpr auto accept_pause = std::chrono::milliseconds(10);

// Serves for ever. `begin(socket)` starts a connection on its own executor.
template <class Begin> void serve(const linerate::Spec& spec, Begin begin) {
    Loops loops(spec.threads);
    auto acceptor = listen(loops.first(), spec);
    net::steady_timer pause(loops.first());
    std::function<void()> accept = [&] {
        acceptor.async_accept(loops.next(), [&](error_code error, TcpSocket socket) {
            if (error) {
                pause.expires_after(accept_pause);
                return pause.async_wait([&](error_code) { accept(); });
            }
            socket.set_option(tcp::no_delay(true), error);
            auto executor = socket.get_executor();
            net::dispatch(executor, [&begin, socket = std::move(socket)]() mutable { begin(std::move(socket)); });
            accept();
        });
    };
    accept();
    loops.run_for_ever();
}

// Client and server in one loop (`options.ends`). The client connects to a listener on loopback, and each connection is
// accepted when it is established, before the window.
class OneLoop {
public:
    explicit OneLoop(const linerate::Spec& spec) : loops(spec.threads), client(spec), server(spec) {
        server.role = "server";
        client.connect = {where_.address().to_string(), acceptor_.local_endpoint().port()};
    }
    // The server's end of the client's latest connection.
    TcpSocket accept() {
        TcpSocket socket(loops.next());
        acceptor_.accept(socket);
        socket.set_option(tcp::no_delay(true));
        return socket;
    }

    Loops loops;
    linerate::Spec client, server;

private:
    tcp::endpoint where_{net::ip::address_v4::loopback(), 0};
    tcp::acceptor acceptor_ = open_listener(loops.first(), where_);
};

// Opens a client's socket at the `turn`-th of its source addresses.
template <class Socket> void open(Socket& socket, const linerate::Spec& spec, const tcp::endpoint& to, std::size_t turn) {
    socket.open(to.protocol());
    socket.set_option(tcp::no_delay(true));
    if (spec.sources.empty()) return;
    // connect(2) then chooses the port: 64,511 ports for each pair of addresses, not for each source.
    int on = 1;
    setsockopt(socket.native_handle(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    socket.bind({net::ip::make_address(spec.sources[turn % spec.sources.size()]), 0});
}
