// The parts of Corosio and Capy that are used here, and helpers.
#pragma once

#include <boost/capy/buffers.hpp>
#include <boost/capy/cond.hpp>
#include <boost/capy/ex/run_async.hpp>
#include <boost/capy/task.hpp>
#include <boost/capy/write.hpp>
#include <boost/corosio/endpoint.hpp>
#include <boost/corosio/io_context.hpp>
#include <boost/corosio/socket_option.hpp>
#include <boost/corosio/tcp_acceptor.hpp>
#include <boost/corosio/tcp_socket.hpp>
#include <boost/corosio/timer.hpp>

#include "linerate.hpp"
#include <system_error>
#include <thread>
#include <type_traits>

namespace capy = boost::capy;
namespace corosio = boost::corosio;

// Runs the context on `threads` threads, this one included.
inline void run(corosio::io_context& context, std::uint32_t threads) {
    std::vector<std::thread> others;
    for (std::uint32_t i = 1; i < threads; ++i) others.emplace_back([&context] { context.run(); });
    context.run();
    for (auto& each : others) each.join();
}

// The error of open() or shutdown(). Commit 4276bd4 throws or returns nothing, later ones return it.
template <class Call> std::error_code error_of(Call call) try {
    if constexpr (std::is_void_v<decltype(call())>) return call(), std::error_code();
    else return call();
} catch (const std::system_error& error) {
    return error.code();
}

inline corosio::endpoint endpoint(const std::string& ip, std::uint16_t port) {
    bool v6 = ip.find(':') != ip.npos;
    return corosio::endpoint((v6 ? "[" + ip + "]" : ip) + ":" + std::to_string(port));
}

// A client's sockets and timers are used by their own thread only.
inline void need_one_thread(const linerate::Spec& spec) {
    if (spec.threads > 1)
        throw linerate::Unsupported("a client on several threads: sockets and timers belong to one thread");
}
