// The connections of a client. They are established one after another with blocking calls before the window opens.
#pragma once

#include "transport.hpp"

template <class Transport> struct Connections {
    // `executor()` runs the handlers of one more connection; `connected()` is called when that is established.
    template <class Next, class Connected>
    Connections(const linerate::Spec& spec, Next executor, Connected connected)
        : setting(spec), clients(spec), transports(spec.connections), dog(clients.watch()) {
        for (std::size_t i = 0; i < transports.size(); ++i) {
            connect(i, TcpSocket(executor()));
            if (transports[i]) connected();
        }
    }

    typename Transport::Setting setting;
    linerate::Clients clients;
    std::vector<std::shared_ptr<Transport>> transports; // null: not established, which is counted
    std::unique_ptr<linerate::Watchdog> dog;

    // Ends the connection of a client: without an error, or because of one.
    static void end(linerate::Client& client, error_code error) {
        if (error) client.fail(error.value(), Transport::is_end(error));
        client.watched.release();
    }
    // Closes the window and prints.
    void done() {
        dog.reset();
        for (auto& each : transports)
            if (each) clients.window.set_tls(each->tls());
        clients.window.done(clients.all);
    }

private:
    void connect(std::size_t i, TcpSocket socket) {
        auto& client = *clients.all[i];
        auto to = endpoint(clients.spec.connect);
        try {
            open(socket, clients.spec, to, i);
            client.watched.watch(socket.native_handle());
            socket.connect(to);
            auto transport = std::make_shared<Transport>(std::move(socket), setting);
            transport->greet(clients.spec);
            transports[i] = std::move(transport);
            return;
        } catch (const system_error& e) {
            client.fail_connect(linerate::connect_kind(e.code().value()));
        } catch (const Refused& refused) {
            client.fail_connect(refused.kind);
        }
        client.watched.release();
    }
};
