// Asio's names for coroutines, as in its example echo_server_with_as_tuple_default: errors are values, not exceptions, so
// that the end of a connection costs what it costs with callbacks.
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
