// Shared by client and server: sending messages, setting up an endpoint, running its threads.
#pragma once

#include "linerate/protocol_spec.hpp"

#include <thread>
#include <websocketpp/common/connection_hdl.hpp>
#include <websocketpp/frame.hpp>

namespace wspp = websocketpp;

// send() queues without limit, and there is no callback for an empty queue. Above this limit a connection pauses for so long,
// which is less than the time to send 4 MiB.
inline constexpr std::size_t queue_limit = 4 << 20;
inline constexpr long queue_pause_ms = 1;

// Sends the protocol's next bytes; then calls `done`.
template <class Connection, class Done>
void send(std::shared_ptr<Connection> connection, linerate::Protocol& protocol, Done done) {
    while (connection->get_buffered_amount() < queue_limit) {
        auto piece = protocol.next();
        if (piece.empty()) return done();
        // The close handler reports a connection that is closing.
        if (connection->send(piece.data(), piece.size(), wspp::frame::opcode::binary)) return;
    }
    connection->set_timer(queue_pause_ms, [connection, &protocol, done](const wspp::lib::error_code& error) {
        if (!error) send(connection, protocol, done);
    });
}

// No log, and the message limit. `Endpoint` is a client or a server.
template <class Endpoint> void set_up(Endpoint& endpoint) {
    endpoint.clear_access_channels(wspp::log::alevel::all);
    endpoint.clear_error_channels(wspp::log::elevel::all);
    endpoint.set_max_message_size(linerate::longest_message);
    endpoint.init_asio();
}

template <class Endpoint> void run(Endpoint& endpoint, std::uint32_t threads) {
    std::vector<std::thread> others;
    for (std::uint32_t i = 1; i < threads; ++i) others.emplace_back([&endpoint] { endpoint.run(); });
    endpoint.run();
    for (auto& each : others) each.join();
}
