// Beast's WebSocket as a transport, with the steps of systems/asio/transport.hpp. Each write is one binary message; read()
// takes a whole message, as in Beast's examples.
#pragma once

#include "transport.hpp"

#include <boost/asio/ssl/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>

namespace beast = boost::beast;
namespace websocket = beast::websocket;

template <class Layer> class WebSocketTransport {
public:
    // `arguments` construct the layer below: a socket, and for TLS the context.
    template <class... Arguments> WebSocketTransport(const linerate::Spec& spec, Arguments&&... arguments)
        : stream_(std::forward<Arguments>(arguments)...) {
        auto role = spec.is_server() ? beast::role_type::server : beast::role_type::client;
        stream_.set_option(websocket::stream_base::timeout::suggested(role));
        stream_.read_message_max(linerate::longest_message);
        stream_.binary(true);
        if (auto bytes = spec.option("write-buffer"); !bytes.empty()) {
            stream_.write_buffer_bytes(std::stoul(bytes));
            stream_.auto_fragment(false);
        }
    }

    auto get_executor() { return stream_.get_executor(); }
    static bool is_end(error_code error) {
        return error == websocket::error::closed || error == net::error::eof || error == net::ssl::error::stream_truncated;
    }

    void accept() { stream_.accept(); }
    void write(std::string_view piece) { stream_.write(net::buffer(piece)); }
    std::string_view read() {
        received_.clear();
        stream_.read(received_);
        return bytes();
    }
    void close() {
        if (stream_.is_open()) stream_.close(websocket::close_code::normal);
    }

    template <class F> void async_accept(F then) { stream_.async_accept(std::move(then)); }
    template <class F> void async_write(std::string_view piece, F then) {
        stream_.async_write(net::buffer(piece), [then = std::move(then)](error_code error, std::size_t) { then(error); });
    }
    template <class F> void async_read(F then) {
        received_.clear();
        stream_.async_read(received_, [this, then = std::move(then)](error_code error, std::size_t) {
            then(error, bytes());
        });
    }
    // Cancels operations that wait for the socket, without a closing handshake.
    void drop() { beast::close_socket(beast::get_lowest_layer(stream_)); }
    void shut_down() {} // a stream by time is over TCP only

    // A server's stream has answered the close in its read.
    template <class F> void async_close(F then) {
        if (!stream_.is_open()) return then(error_code());
        stream_.async_close(websocket::close_code::normal, std::move(then));
    }

protected:
    void upgrade(const linerate::Spec& spec) {
        error_code error;
        websocket::response_type answer;
        stream_.handshake(answer, host(spec), "/", error);
        if (!error) return;
        if (error == websocket::error::upgrade_declined) throw Refused{linerate::Kind::wrong_status};
        if (error.category() == boost::system::system_category()) throw system_error(error);
        throw Refused{linerate::Kind::malformed};
    }

    websocket::stream<Layer> stream_;

private:
    std::string_view bytes() const {
        auto data = received_.cdata();
        return {static_cast<const char*>(data.data()), data.size()};
    }
    static std::string host(const linerate::Spec& spec) {
        return (spec.tls.name.empty() ? spec.connect.ip : spec.tls.name) + ":" + std::to_string(spec.connect.port);
    }

    beast::flat_buffer received_;
};
