// What carries a conversation (sdk/cpp/linerate/conversation.hpp) in Asio: a socket, or TLS on one. Each has the same few
// steps in a blocking and in an asynchronous form; so has Beast's WebSocket (systems/beast).
#pragma once

#include "net.hpp"
#include "linerate/conversation.hpp"
#include "linerate/tls.hpp"

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>

namespace ssl = net::ssl;

// What all connections of a process share.
struct Setting {
    explicit Setting(const linerate::Spec& spec)
        : spec(spec), content(spec.workload == "stream" ? spec.size : 0), context(ssl::context::tls) {
        linerate::need_conversation(spec);
        if (spec.layer != "tls" && spec.layer != "wss") return;
        if (spec.role == "server") linerate::tls::configure_server(context.native_handle(), spec);
        else linerate::tls::configure_client(context.native_handle(), spec);
    }
    const linerate::Spec& spec;
    linerate::Content content;
    ssl::context context;
};

// A client's connection that did not come to stand.
struct Refused {
    linerate::Kind kind;
};

class PlainTransport {
public:
    PlainTransport(tcp::socket socket, Setting& setting) : socket_(std::move(socket)), data_(linerate::read_size(setting.spec)) {}

    auto get_executor() { return socket_.get_executor(); }
    static bool is_end(error_code error) { return error == net::error::eof; }

    // A client's handshakes, blocking, before the window; and what TLS they agreed on.
    void greet(const linerate::Spec&) {}
    std::string tls() { return {}; }

    void accept() {}
    void write(std::string_view piece) { net::write(socket_, net::buffer(piece)); }
    std::string_view read() { return {data_.data(), socket_.read_some(net::buffer(data_))}; }
    void close() { socket_.close(); }

    template <class F> void async_accept(F then) { then(error_code()); }
    template <class F> void async_write(std::string_view piece, F then) {
        net::async_write(socket_, net::buffer(piece), [then = std::move(then)](error_code error, std::size_t) { then(error); });
    }
    template <class F> void async_read(F then) {
        socket_.async_read_some(net::buffer(data_), [this, then = std::move(then)](error_code error, std::size_t length) {
            then(error, std::string_view(data_.data(), length));
        });
    }
    template <class F> void async_close(F then) {
        error_code error;
        socket_.close(error);
        then(error);
    }

private:
    tcp::socket socket_;
    std::vector<char> data_;
};

// The client's half of a TLS handshake, for every stream that has TLS in it.
template <class TlsStream> void greet_by_tls(TlsStream& stream, const linerate::Spec& spec) {
    linerate::tls::expect_name(stream.native_handle(), spec);
    error_code error;
    stream.handshake(ssl::stream_base::client, error);
    if (error) throw Refused{linerate::Kind::tls_failed};
}

class TlsTransport {
public:
    TlsTransport(tcp::socket socket, Setting& setting)
        : stream_(std::move(socket), setting.context), data_(linerate::read_size(setting.spec)) {}

    auto get_executor() { return stream_.get_executor(); }
    static bool is_end(error_code error) { return error == net::error::eof || error == ssl::error::stream_truncated; }

    void greet(const linerate::Spec& spec) { greet_by_tls(stream_, spec); }
    std::string tls() { return linerate::tls::describe(stream_.native_handle()); }

    void accept() { stream_.handshake(ssl::stream_base::server); }
    void write(std::string_view piece) { net::write(stream_, net::buffer(piece)); }
    std::string_view read() { return {data_.data(), stream_.read_some(net::buffer(data_))}; }
    void close() { stream_.shutdown(); }

    template <class F> void async_accept(F then) { stream_.async_handshake(ssl::stream_base::server, std::move(then)); }
    template <class F> void async_write(std::string_view piece, F then) {
        net::async_write(stream_, net::buffer(piece), [then = std::move(then)](error_code error, std::size_t) { then(error); });
    }
    template <class F> void async_read(F then) {
        stream_.async_read_some(net::buffer(data_), [this, then = std::move(then)](error_code error, std::size_t length) {
            then(error, std::string_view(data_.data(), length));
        });
    }
    template <class F> void async_close(F then) { stream_.async_shutdown(std::move(then)); }

private:
    ssl::stream<tcp::socket> stream_;
    std::vector<char> data_;
};
