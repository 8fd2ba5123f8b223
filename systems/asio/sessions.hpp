// Protocols in asynchronous style: a session that its handlers keep alive, as in Asio's tutorial.
#pragma once

#include "connections.hpp"

template <class Transport> class Session : public std::enable_shared_from_this<Session<Transport>> {
public:
    // `ended(error)` is called once, if at all.
    using Ended = std::function<void(error_code)>;
    Session(Transport& transport, linerate::Protocol& protocol, Ended ended)
        : transport_(transport), protocol_(protocol), ended_(std::move(ended)) {}

    void step() {
        if (over_) return;
        if (!writing_) {
            if (auto piece = protocol_.next(); !piece.empty()) write(piece);
            else if (protocol_.over()) return close();
            else if (protocol_.shuts_down()) transport_.shut_down();
        }
        if (!reading_ && (!writing_ || protocol_.is_duplex())) read();
    }

private:
    void write(std::string_view piece) {
        writing_ = true;
        transport_.async_write(piece, [this, self = this->shared_from_this()](error_code error) {
            writing_ = false;
            if (error) return fail(error);
            step();
        });
    }
    void read() {
        reading_ = true;
        transport_.async_read([this, self = this->shared_from_this()](error_code error, std::string_view bytes) {
            reading_ = false;
            if (!error) protocol_.receive(bytes);
            else if (!Transport::is_end(error) || !protocol_.end()) return fail(error);
            step();
        });
    }
    void close() {
        over_ = true;
        transport_.async_close([this, self = this->shared_from_this()](error_code) { ended_({}); });
    }
    void fail(error_code error) {
        if (std::exchange(over_, true)) return;
        ended_(error);
        if (reading_ || writing_) transport_.drop();
    }

    Transport& transport_;
    linerate::Protocol& protocol_;
    Ended ended_;
    bool reading_ = false, writing_ = false, over_ = false;
};

// A server's connection: it lives as long as its handlers.
template <class Transport> struct Served : std::enable_shared_from_this<Served<Transport>> {
    Served(TcpSocket socket, typename Transport::Setting& setting)
        : transport(std::move(socket), setting), protocol(linerate::make_server(setting.spec, setting.content)) {}

    void start() {
        transport.async_accept([this, self = this->shared_from_this()](error_code error) {
            if (error) return;
            // A client that has closed in order is answered in order.
            auto ended = [this, self](error_code error) {
                if (Transport::is_end(error)) transport.async_close([self](error_code) {});
            };
            std::make_shared<Session<Transport>>(transport, *protocol, ended)->step();
        });
    }

    Transport transport;
    std::unique_ptr<linerate::Protocol> protocol;
};

template <class Transport> void serve_sessions(const linerate::Spec& spec) {
    linerate::need_protocol(spec, true);
    typename Transport::Setting setting(spec);
    serve(spec, [&](TcpSocket socket) { std::make_shared<Served<Transport>>(std::move(socket), setting)->start(); });
}

// The client's sessions on these loops; `connected()` is called for each connection, before the window.
template <class Transport, class Connected>
void drive_sessions(const linerate::Spec& spec, Loops& loops, Connected connected) {
    Connections<Transport> connections(spec, [&] { return loops.next(); }, connected);
    auto& clients = connections.clients;
    using Each = Session<Transport>;
    std::vector<std::pair<Executor, std::shared_ptr<Each>>> sessions;
    for (std::size_t i = 0; i < clients.all.size(); ++i) {
        if (!connections.transports[i]) continue;
        auto& client = *clients.all[i];
        auto ended = [&client, &transport = *connections.transports[i]](error_code error) {
            Connections<Transport>::end(client, error);
            if (error) transport.drop();
        };
        auto session = std::make_shared<Each>(*connections.transports[i], client, ended);
        sessions.emplace_back(connections.transports[i]->get_executor(), std::move(session));
    }
    clients.rounds.wake = [&] {
        for (auto& [executor, session] : sessions) net::dispatch(executor, [&each = *session] { each.step(); });
    };
    clients.window.open();
    for (auto& [executor, session] : sessions) net::post(executor, [&each = *session] { each.step(); });
    if (spec.workload == "fanout") clients.rounds.begin(linerate::now_ns());
    loops.run();
    connections.done();
}

template <class Transport> void drive_sessions(const linerate::Spec& spec) {
    linerate::need_protocol(spec, true);
    Loops loops(spec.threads);
    drive_sessions<Transport>(spec, loops, [] {});
}
