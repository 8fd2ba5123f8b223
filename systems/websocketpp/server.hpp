// The server, as WebSocket++'s example echo_server: handlers, and a protocol for each connection.
#pragma once

#include "endpoint.hpp"

#include <websocketpp/server.hpp>

template <class Config> class Server {
    using Endpoint = wspp::server<Config>;
    using Hdl = wspp::connection_hdl;

public:
    // `secure(endpoint)` sets up TLS.
    template <class Secure> Server(const linerate::Spec& spec, Secure secure)
        : spec_(spec), content_(spec.workload == "stream" ? spec.size : 0) {
        linerate::need_protocol(spec, false);
        set_up(endpoint_);
        secure(endpoint_);
        endpoint_.set_reuse_addr(true);
        endpoint_.set_listen_backlog(linerate::backlog);
        endpoint_.set_tcp_pre_init_handler([this](Hdl hdl) {
            boost::system::error_code ignored;
            endpoint_.get_con_from_hdl(hdl)->get_raw_socket().set_option(boost::asio::ip::tcp::no_delay(true), ignored);
        });
        endpoint_.set_open_handler([this](Hdl hdl) { open(hdl); });
        endpoint_.listen({boost::asio::ip::make_address(spec.listen.ip), spec.listen.port});
        endpoint_.start_accept();
        boost::system::error_code error;
        linerate::emit_ready(spec.listen.ip, endpoint_.get_local_endpoint(error).port());
        run(endpoint_, spec.threads);
    }

private:
    // The handlers of a connection own its protocol: the message handler, and `done` of a timer.
    void open(Hdl hdl) {
        auto connection = endpoint_.get_con_from_hdl(hdl);
        std::shared_ptr<linerate::Protocol> protocol = linerate::make_server(spec_, content_);
        connection->set_message_handler([this, protocol](Hdl from, typename Endpoint::message_ptr message) {
            protocol->receive(message->get_payload());
            send(endpoint_.get_con_from_hdl(from), *protocol, [protocol] {});
        });
    }

    const linerate::Spec& spec_;
    linerate::Content content_;
    Endpoint endpoint_;
};
