#pragma once

#include "websocket.hpp"

// WebSocket on a socket: `Layer` is a tcp::socket in Beast's blocking examples, a tcp_stream in the asynchronous ones.
template <class Layer> class Websocket : public WebSocketTransport<Layer> {
public:
    using Setting = ::Setting;
    Websocket(tcp::socket socket, Setting& setting) : WebSocketTransport<Layer>(setting.spec, std::move(socket)) {}
    void greet(const linerate::Spec& spec) { this->upgrade(spec); }
    std::string tls() { return {}; }
};
