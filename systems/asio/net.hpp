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
#include <netinet/in.h>
#include <thread>

using tcp = net::ip::tcp;
using udp = net::ip::udp;

// The executor of one connection's handlers: with several threads a strand, as in Asio's example HTTP server 3.
inline net::any_io_executor connection_executor(net::io_context& context, std::uint32_t threads) {
    if (threads > 1) return net::make_strand(context);
    return context.get_executor();
}

// Runs the context on `threads` threads, this one included.
inline void run(net::io_context& context, std::uint32_t threads) {
    std::vector<std::thread> others;
    for (std::uint32_t i = 1; i < threads; ++i) others.emplace_back([&context] { context.run(); });
    context.run();
    for (auto& each : others) each.join();
}

template <class Protocol = tcp> typename Protocol::endpoint endpoint(const linerate::Address& address) {
    return {net::ip::make_address(address.ip), address.port};
}

// Listens, and prints `ready`.
inline tcp::acceptor listen(net::io_context& context, const linerate::Spec& spec) {
    auto where = endpoint(spec.listen);
    tcp::acceptor acceptor(context);
    acceptor.open(where.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(where);
    acceptor.listen(linerate::backlog);
    linerate::emit_ready(spec.listen.ip, acceptor.local_endpoint().port());
    return acceptor;
}

// The pause of a listener after a failed accept(2): there is no descriptor for a waiting connection.
inline constexpr auto accept_pause = std::chrono::milliseconds(10);

// Serves for ever. `begin(socket)` starts a connection on its own executor.
template <class Begin> void serve(const linerate::Spec& spec, Begin begin) {
    net::io_context context(int(spec.threads));
    auto acceptor = listen(context, spec);
    net::steady_timer pause(context);
    std::function<void()> accept = [&] {
        acceptor.async_accept(connection_executor(context, spec.threads), [&](error_code error, tcp::socket socket) {
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
    run(context, spec.threads);
}

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
