// The connections of a client that has conversations: they are made one after another with blocking calls before the
// window opens, and are watched from then on.
#pragma once

#include "transport.hpp"

template <class Transport> class Clients {
public:
    struct One {
        std::unique_ptr<linerate::Client> client;
        std::unique_ptr<Transport> transport; // none: it could not be had, which is counted
    };

    // `executor()` is what the handlers of one more connection run on.
    template <class Executor> Clients(const linerate::Spec& spec, Executor executor) : window(spec), setting_(spec) {
        std::vector<linerate::Watched*> watched;
        for (std::uint32_t i = 0; i < spec.connections; ++i) {
            all.push_back({linerate::make_client(spec, window, setting_.content), nullptr});
            watched.push_back(&all.back().client->watched);
        }
        dog_ = std::make_unique<linerate::Watchdog>(spec.timeout_ns, watched);
        for (std::size_t i = 0; i < all.size(); ++i) connect(all[i], tcp::socket(executor()), i);
    }

    linerate::Window window;
    std::vector<One> all;

    // One of them has failed.
    static void fail(One& one, error_code error) { one.client->fail(error.value(), Transport::is_end(error)); }

    // Closes the window and prints.
    void done() {
        dog_.reset();
        std::vector<linerate::Client*> clients;
        for (auto& each : all) {
            if (each.transport) window.tell_tls(each.transport->tls());
            clients.push_back(each.client.get());
        }
        window.done(clients);
    }

private:
    void connect(One& one, tcp::socket socket, std::size_t turn) {
        const auto& spec = setting_.spec;
        try {
            open(socket, spec, endpoint(spec.connect), turn);
            one.client->watched.hold(socket.native_handle());
            socket.connect(endpoint(spec.connect));
            one.transport = std::make_unique<Transport>(std::move(socket), setting_);
            one.transport->greet(spec);
            return;
        } catch (const system_error& e) {
            one.client->fail_connect(linerate::connect_kind(e.code().value()));
        } catch (const Refused& refused) {
            one.client->fail_connect(refused.kind);
        }
        one.client->watched.release();
        one.transport.reset();
    }

    Setting setting_;
    std::unique_ptr<linerate::Watchdog> dog_;
};
