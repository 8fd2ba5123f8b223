// The client, as WebSocket++'s example utility_client: one endpoint for all connections, told by handlers how they fare.
#pragma once

#include "endpoint.hpp"

#include <thread>
#include <websocketpp/client.hpp>

template <class Config> class Clients {
    using Endpoint = wspp::client<Config>;
    using Hdl = wspp::connection_hdl;
    struct One {
        std::unique_ptr<linerate::Client> client;
        typename Endpoint::connection_ptr connection;
        bool connected = false, open = false;
    };

public:
    // `secure(endpoint)` sets what TLS needs, `named(connection)` the name that is expected, `tls(connection)` tells what the
    // two agreed on.
    template <class Secure, class Named, class Tls>
    Clients(const linerate::Spec& spec, Secure secure, Named named, Tls tls)
        : spec_(spec), window_(spec), content_(spec.workload == "stream" ? spec.size : 0) {
        linerate::need_conversation(spec);
        set_up(endpoint_);
        secure(endpoint_);
        std::vector<linerate::Watched*> watched;
        for (std::uint32_t i = 0; i < spec.connections; ++i) {
            all_.push_back({linerate::make_client(spec, window_, content_), nullptr});
            watched.push_back(&all_.back().client->watched);
        }
        linerate::Watchdog dog(spec.timeout_ns, watched);
        opening_ = all_.size();
        for (auto& one : all_) connect(one, named);
        std::vector<std::thread> others;
        for (std::uint32_t i = 1; i < spec.threads; ++i) others.emplace_back([this] { endpoint_.run(); });
        endpoint_.run();
        for (auto& each : others) each.join();
        std::vector<linerate::Client*> clients;
        for (auto& one : all_) {
            if (one.open) window_.tell_tls(tls(*one.connection));
            clients.push_back(one.client.get());
        }
        window_.done(clients);
    }

private:
    template <class Named> void connect(One& one, Named named) {
        wspp::lib::error_code error;
        bool v6 = spec_.connect.ip.find(':') != std::string::npos;
        auto host = (v6 ? "[" + spec_.connect.ip + "]" : spec_.connect.ip) + ":" + std::to_string(spec_.connect.port);
        auto connection = endpoint_.get_connection((spec_.layer == "wss" ? "wss://" : "ws://") + host + "/", error);
        if (error) throw std::runtime_error("WebSocket++ makes no connection: " + error.message());
        one.connection = connection;
        connection->set_tcp_pre_init_handler([&one, named](Hdl) {
            one.connected = true;
            boost::system::error_code ignored;
            one.connection->get_raw_socket().set_option(boost::asio::ip::tcp::no_delay(true), ignored);
            one.client->watched.hold(one.connection->get_raw_socket().native_handle());
            named(*one.connection);
        });
        connection->set_open_handler([this, &one](Hdl) {
            one.open = true;
            stands();
        });
        connection->set_fail_handler([this, &one](Hdl) {
            one.client->watched.release();
            one.client->fail_connect(refused(one));
            stands();
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

    // The last of them opens the window and begins all that stand.
    void stands() {
        if (opening_.fetch_sub(1) != 1) return;
        window_.open();
        for (auto& one : all_)
            if (one.open) one.connection->set_timer(0, [this, &one](const wspp::lib::error_code&) { step(one); });
    }

    void step(One& one) {
        speak(one.connection, *one.client, [&one] {
            wspp::lib::error_code ignored;
            if (one.client->over()) one.connection->close(wspp::close::status::normal, "", ignored);
        });
    }

    static linerate::Kind refused(One& one) {
        // WebSocket++ keeps the system's reason to itself.
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
    linerate::Window window_;
    linerate::Content content_;
    Endpoint endpoint_;
    std::vector<One> all_;
    std::atomic<std::size_t> opening_{0};
};
