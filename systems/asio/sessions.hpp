// Conversations in asynchronous style: a session that keeps itself alive by its handlers, as the Asio tutorial writes it.
#pragma once

#include "clients.hpp"

template <class Transport> class ServerSession : public std::enable_shared_from_this<ServerSession<Transport>> {
public:
    ServerSession(tcp::socket socket, Setting& setting)
        : transport_(std::move(socket), setting), conversation_(linerate::make_server(setting.spec, setting.content)) {}

    void start() {
        transport_.async_accept([this, self = this->shared_from_this()](error_code error) {
            if (!error) step();
        });
    }

private:
    void step() {
        auto piece = conversation_->next();
        if (piece.empty()) return read();
        transport_.async_write(piece, [this, self = this->shared_from_this()](error_code error) {
            if (!error) step();
        });
    }
    void read() {
        transport_.async_read([this, self = this->shared_from_this()](error_code error, std::string_view bytes) {
            if (error) return end(error);
            conversation_->receive(bytes);
            step();
        });
    }
    // A client that has closed in order is answered in order.
    void end(error_code error) {
        if (Transport::is_end(error)) transport_.async_close([self = this->shared_from_this()](error_code) {});
    }

    Transport transport_;
    std::unique_ptr<linerate::Conversation> conversation_;
};

template <class Transport> void serve_sessions(const linerate::Spec& spec) {
    Setting setting(spec);
    net::io_context context(int(spec.threads));
    auto acceptor = listen(context, spec);
    net::steady_timer rest(context);
    std::function<void()> accept = [&] {
        acceptor.async_accept(connection_executor(context, spec.threads), [&](error_code error, tcp::socket socket) {
            if (error) {
                rest.expires_after(accept_rest);
                return rest.async_wait([&](error_code) { accept(); });
            }
            socket.set_option(tcp::no_delay(true), error);
            auto executor = socket.get_executor();
            auto session = std::make_shared<ServerSession<Transport>>(std::move(socket), setting);
            net::dispatch(executor, [session] { session->start(); });
            accept();
        });
    };
    accept();
    run(context, spec.threads);
}

template <class Transport> class ClientSession {
public:
    ClientSession(typename Clients<Transport>::One& one) : one_(one) {}

    void step() {
        auto piece = one_.client->next();
        if (piece.empty() && one_.client->over()) return one_.transport->async_close([this](error_code) { end(); });
        if (piece.empty()) return read();
        one_.transport->async_write(piece, [this](error_code error) {
            if (error) return fail(error);
            step();
        });
    }

private:
    void read() {
        one_.transport->async_read([this](error_code error, std::string_view bytes) {
            if (error) return fail(error);
            one_.client->receive(bytes);
            step();
        });
    }
    void fail(error_code error) {
        Clients<Transport>::fail(one_, error);
        end();
    }
    void end() { one_.client->watched.release(); }

    typename Clients<Transport>::One& one_;
};

template <class Transport> void drive_sessions(const linerate::Spec& spec) {
    net::io_context context(int(spec.threads));
    Clients<Transport> clients(spec, [&] { return connection_executor(context, spec.threads); });
    std::vector<std::unique_ptr<ClientSession<Transport>>> sessions;
    clients.window.open();
    for (auto& one : clients.all) {
        if (!one.transport) continue;
        sessions.push_back(std::make_unique<ClientSession<Transport>>(one));
        net::post(one.transport->get_executor(), [session = sessions.back().get()] { session->step(); });
    }
    run(context, spec.threads);
    clients.done();
}
