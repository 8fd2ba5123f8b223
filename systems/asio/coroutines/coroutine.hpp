// Asio's names for coroutines, as in its example echo_server_with_as_tuple_default. Errors are values, not exceptions, so
// that the end of a connection costs as much as with callbacks.
#pragma once

#include "net.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

using net::awaitable;
using net::co_spawn;
using net::detached;
using Token = net::as_tuple_t<net::use_awaitable_t<>>;
using Socket = Token::as_default_on_t<tcp::socket>;
using Acceptor = Token::as_default_on_t<tcp::acceptor>;
using Timer = Token::as_default_on_t<net::steady_timer>;

// Serves for ever. `session(socket)` is the coroutine of one connection.
template <class Session> awaitable<void> accept(Loops& loops, Acceptor acceptor, Session session) {
    for (;;) {
        auto executor = loops.next();
        auto [error, socket] = co_await acceptor.async_accept(executor);
        if (error) {
            co_await Timer(loops.first(), accept_pause).async_wait();
            continue;
        }
        socket.set_option(tcp::no_delay(true), error);
        co_spawn(executor, session(std::move(socket)), detached);
    }
}

// A client's coroutines on these loops; `connected()` is called for each connection, before the window.
void drive_coroutines(const linerate::Spec& spec, Loops& loops, const std::function<void()>& connected);

// Runs client and server in one loop. `session(socket)` is the coroutine of one connection of the server.
template <class Session> void loop_coroutines(OneLoop& both, Session session) {
    drive_coroutines(both.client, both.loops, [&] {
        auto socket = both.accept();
        auto executor = socket.get_executor();
        co_spawn(executor, session(std::move(socket)), detached);
    });
}

template <class Session> void serve_coroutines(const linerate::Spec& spec, Session session) {
    Loops loops(spec.threads);
    co_spawn(loops.first(), accept(loops, Acceptor(listen(loops.first(), spec)), session), detached);
    loops.run();
}
