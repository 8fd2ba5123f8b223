// The client, as WebSocket++'s example utility_client: one endpoint, and handlers for each connection.
#pragma once

#include "endpoint.hpp"

#include <websocketpp/client.hpp>

template <class Config> class Driver {
    using Endpoint = wspp::client<Config>;
    using Hdl = wspp::connection_hdl;
    struct One {
        linerate::Client* client;
        typename Endpoint::connection_ptr connection;
        bool connected = false, open = false;
    };

public:
    // `secure(endpoint)` sets up TLS, `named(connection)` sets the expected name, `tls(connection)` describes the negotiated TLS.
    template <class Secure, class Named, class Tls>
    Driver(const linerate::Spec& spec, Secure secure, Named named, Tls tls) : spec_(spec), clients_(spec) {
        set_up(endpoint_);
        secure(endpoint_);
        for (auto& client : clients_.all) all_.push_back({client.get(), nullptr});
        auto dog = clients_.watch();
        opening_ = all_.size();
        for (auto& one : all_) connect(one, named);
        run(endpoint_, spec.threads);
        for (auto& one : all_)
            if (one.open) clients_.window.set_tls(tls(*one.connection));
        clients_.window.done(clients_.all);
    }

private:
    template <class Named> void connect(One& one, Named named) {
        wspp::lib::error_code error;
        bool v6 = spec_.connect.ip.find(':') != std::string::npos;
        auto host = (v6 ? "[" + spec_.connect.ip + "]" : spec_.connect.ip) + ":" + std::to_string(spec_.connect.port);
        auto connection = endpoint_.get_connection((spec_.layer == "wss" ? "wss://" : "ws://") + host + "/", error);
        if (error) throw std::runtime_error("get_connection: " + error.message());
        one.connection = connection;
        connection->set_tcp_pre_init_handler([&one, named](Hdl) {
            one.connected = true;
            boost::system::error_code ignored;
            one.connection->get_raw_socket().set_option(boost::asio::ip::tcp::no_delay(true), ignored);
            one.client->watched.watch(one.connection->get_raw_socket().native_handle());
            named(*one.connection);
        });
        connection->set_open_handler([this, &one](Hdl) {
            one.open = true;
            settled();
        });
        connection->set_fail_handler([this, &one](Hdl) {
            one.client->watched.release();
            one.client->fail_connect(refused(one));
            settled();
        });
        connection->set_message_handler([this, &one](Hdl, typename Endpoint::message_ptr message) {
            one.client->receive(message->get_payload());
            step(one);
        });
        connection->set_close_handler([&one](Hdl) {
            one.client->watched.release();
            auto error = one.connection->get_transport_ec();
            one.client->fail(error.value(), !error || error == boost::asio::error::eof);
        });
        endpoint_.connect(connection);
    }

    // A connection is open or has failed. The last one opens the window and starts all open ones.
    void settled() {
        if (opening_.fetch_sub(1) != 1) return;
        clients_.window.open();
        for (auto& one : all_)
            if (one.open) one.connection->set_timer(0, [this, &one](const wspp::lib::error_code&) { step(one); });
    }

    void step(One& one) {
        send(one.connection, *one.client, [&one] {
            wspp::lib::error_code ignored;
            if (one.client->over()) one.connection->close(wspp::close::status::normal, "", ignored);
        });
    }

    static linerate::Kind refused(One& one) {
        // WebSocket++ does not report the system's error.
        if (!one.connected) return linerate::Kind::connect_failed;
        auto& connection = *one.connection;
        namespace tls = wspp::transport::asio::socket;
        for (auto failure : {tls::error::tls_handshake_failed, tls::error::tls_handshake_timeout})
            if (connection.get_ec() == tls::make_error_code(failure)) return linerate::Kind::tls_failed;
        if (connection.get_transport_ec()) return linerate::connect_kind(connection.get_transport_ec().value());
        auto status = connection.get_response_code();
        bool answered = status != 0 && status != wspp::http::status_code::switching_protocols;
        return answered ? linerate::Kind::wrong_status : linerate::Kind::malformed;
    }

    const linerate::Spec& spec_;
    linerate::Clients clients_;
    Endpoint endpoint_;
    std::vector<One> all_;
    std::atomic<std::size_t> opening_{0};
};
