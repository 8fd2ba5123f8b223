#pragma once

#include "tls_transport.hpp"
#include "websocket.hpp"

#include <boost/beast/ssl/ssl_stream.hpp>

// WebSocket on TLS on a socket or tcp_stream.
template <class Layer> class Wss : public WebSocketTransport<beast::ssl_stream<Layer>> {
public:
    using Setting = TlsSetting;
    Wss(tcp::socket socket, Setting& setting)
        : WebSocketTransport<beast::ssl_stream<Layer>>(setting.spec, std::move(socket), setting.context) {}

    void greet(const linerate::Spec& spec) {
        greet_by_tls(this->stream_.next_layer(), spec);
        this->upgrade(spec);
    }
    std::string tls() { return linerate::tls::describe(this->stream_.next_layer().native_handle()); }

    void accept() {
        this->stream_.next_layer().handshake(ssl::stream_base::server);
        this->stream_.accept();
    }
    template <class F> void async_accept(F then) {
        auto upgrade = [this, then = std::move(then)](error_code error) mutable {
            if (error) return then(error);
            this->stream_.async_accept(std::move(then));
        };
        this->stream_.next_layer().async_handshake(ssl::stream_base::server, std::move(upgrade));
    }
};
