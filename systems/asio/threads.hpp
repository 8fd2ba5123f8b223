// Protocols in blocking style. Beast's WebSocket uses these loops, too.
#pragma once

#include "connections.hpp"

#include <future>

// Runs until the protocol is over at this end, or the transport throws.
template <class Transport> void run_protocol(Transport& transport, linerate::Protocol& protocol) {
    for (;;) {
        for (auto piece = protocol.next(); !piece.empty(); piece = protocol.next()) transport.write(piece);
        if (protocol.over()) return transport.close();
        if (protocol.shuts_down()) transport.shut_down();
        try {
            protocol.receive(transport.read());
        } catch (const system_error& e) {
            if (!Transport::is_end(e.code()) || !protocol.end()) throw;
        }
    }
}

template <class Transport> void serve_one(tcp::socket socket, typename Transport::Setting& setting) try {
    Transport transport(std::move(socket), setting);
    auto protocol = linerate::make_server(setting.spec, setting.content);
    transport.accept();
    try {
        run_protocol(transport, *protocol);
    } catch (const system_error& e) {
        // A client that has closed in order is answered in order.
        if (Transport::is_end(e.code())) transport.close();
    }
} catch (const system_error&) {
    // The client has gone, which ends its own connection only.
}

template <class Transport> void serve_threads(const linerate::Spec& spec) {
    linerate::need_protocol(spec, false);
    typename Transport::Setting setting(spec);
    net::io_context context(1);
    auto acceptor = listen(context, spec);
    for (;;) {
        error_code error;
        tcp::socket socket(context);
        acceptor.accept(socket, error);
        if (error) {
            std::this_thread::sleep_for(accept_pause);
            continue;
        }
        socket.set_option(tcp::no_delay(true), error);
        std::thread(serve_one<Transport>, std::move(socket), std::ref(setting)).detach();
    }
}

template <class Transport> void drive_threads(const linerate::Spec& spec) {
    linerate::need_protocol(spec, false);
    net::io_context context(1);
    Connections<Transport> connections(spec, [&] { return context.get_executor(); }, [] {});
    // The threads exist before the window opens.
    std::promise<void> opened;
    auto gate = opened.get_future().share();
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < spec.connections; ++i) {
        if (!connections.transports[i]) continue;
        auto drive = [gate, &client = *connections.clients.all[i], &transport = *connections.transports[i]] {
            error_code error;
            gate.wait();
            try {
                run_protocol(transport, client);
            } catch (const system_error& e) {
                error = e.code();
            }
            Connections<Transport>::end(client, error);
        };
        threads.emplace_back(drive);
    }
    connections.clients.window.open();
    opened.set_value();
    for (auto& each : threads) each.join();
    connections.done();
}
