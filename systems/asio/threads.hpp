// Conversations in blocking style: a thread for each connection, as Asio's example blocking_tcp_echo_server has it.
#pragma once

#include "clients.hpp"

#include <future>

// Talks until the conversation is over at this end, or the transport throws.
template <class Transport, class IsOver> void talk(Transport& transport, linerate::Conversation& conversation, IsOver is_over) {
    for (;;) {
        for (auto piece = conversation.next(); !piece.empty(); piece = conversation.next()) transport.write(piece);
        if (is_over()) return;
        conversation.receive(transport.read());
    }
}

template <class Transport> void serve_one(tcp::socket socket, Setting& setting) {
    Transport transport(std::move(socket), setting);
    auto conversation = linerate::make_server(setting.spec, setting.content);
    try {
        transport.accept();
        talk(transport, *conversation, [] { return false; });
    } catch (const system_error& e) {
        // A client that has closed in order is answered in order; one that vanished ends its own connection only.
        if (!Transport::is_end(e.code())) return;
        try {
            transport.close();
        } catch (const system_error&) {
        }
    }
}

template <class Transport> void serve_threads(const linerate::Spec& spec) {
    Setting setting(spec);
    net::io_context context(1);
    auto acceptor = listen(context, spec);
    for (;;) {
        error_code error;
        tcp::socket socket(context);
        acceptor.accept(socket, error);
        if (error) {
            std::this_thread::sleep_for(accept_rest);
            continue;
        }
        socket.set_option(tcp::no_delay(true), error);
        std::thread(serve_one<Transport>, std::move(socket), std::ref(setting)).detach();
    }
}

template <class Transport> void drive_one(typename Clients<Transport>::One& one) {
    try {
        talk(*one.transport, *one.client, [&] { return one.client->over(); });
        one.transport->close();
    } catch (const system_error& e) {
        Clients<Transport>::fail(one, e.code());
    }
    one.client->watched.release();
}

template <class Transport> void drive_threads(const linerate::Spec& spec) {
    net::io_context context(1);
    Clients<Transport> clients(spec, [&] { return context.get_executor(); });
    // The threads stand before the window opens.
    std::promise<void> opened;
    auto gate = opened.get_future().share();
    std::vector<std::thread> threads;
    for (auto& one : clients.all)
        if (one.transport)
            threads.emplace_back([gate, &one] {
                gate.wait();
                drive_one<Transport>(one);
            });
    clients.window.open();
    opened.set_value();
    for (auto& each : threads) each.join();
    clients.done();
}
