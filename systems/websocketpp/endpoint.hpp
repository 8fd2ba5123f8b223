// What client and server of WebSocket++ have in common: how messages leave, and how a connection is set up.
#pragma once

#include "linerate/conversation.hpp"

#include <websocketpp/common/connection_hdl.hpp>
#include <websocketpp/frame.hpp>

namespace wspp = websocketpp;

// send() queues without limit. Above so many bytes a connection rests for so many milliseconds: there is no callback for
// a queue that has run empty, and 4 MiB last longer than that.
inline constexpr std::size_t queue_limit = 4 << 20;
inline constexpr long queue_rest_ms = 1;

// Sends what the conversation has to say now; `quiet` is called when it is the other end's turn.
template <class Connection, class Quiet>
void speak(std::shared_ptr<Connection> connection, linerate::Conversation& conversation, Quiet quiet) {
    while (connection->get_buffered_amount() < queue_limit) {
        auto piece = conversation.next();
        if (piece.empty()) return quiet();
        // What is on its way down already is told by the handlers for its end.
        if (connection->send(piece.data(), piece.size(), wspp::frame::opcode::binary)) return;
    }
    connection->set_timer(queue_rest_ms, [connection, &conversation, quiet](const wspp::lib::error_code& error) {
        if (!error) speak(connection, conversation, quiet);
    });
}

// Quiet, no delay, and the message limit. `Endpoint` is a client or a server.
template <class Endpoint> void set_up(Endpoint& endpoint) {
    endpoint.clear_access_channels(wspp::log::alevel::all);
    endpoint.clear_error_channels(wspp::log::elevel::all);
    endpoint.set_max_message_size(linerate::longest_message);
    endpoint.init_asio();
}
