#pragma once

#include "transport.hpp"
#include "linerate/tls.hpp"

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>

namespace ssl = net::ssl;

struct TlsSetting : Setting {
    explicit TlsSetting(const linerate::Spec& spec) : Setting(spec), context(ssl::context::tls) {
        auto configure = spec.is_server() ? linerate::tls::configure_server : linerate::tls::configure_client;
        configure(context.native_handle(), spec);
    }
    ssl::context context;
};

// The client's half of a TLS handshake, for every stream with TLS.
template <class TlsStream> void greet_by_tls(TlsStream& stream, const linerate::Spec& spec) {
    linerate::tls::expect_name(stream.native_handle(), spec);
    error_code error;
    stream.handshake(ssl::stream_base::client, error);
    if (error) throw Refused{linerate::Kind::tls_failed};
}

class TlsTransport : public StreamTransport<ssl::stream<tcp::socket>> {
public:
    using Setting = TlsSetting;
    TlsTransport(tcp::socket socket, Setting& setting)
        : StreamTransport(setting.spec, std::move(socket), setting.context) {}

    static bool is_end(error_code error) {
        return error == net::error::eof || error == ssl::error::stream_truncated;
    }

    void greet(const linerate::Spec& spec) { greet_by_tls(stream_, spec); }
    std::string tls() { return linerate::tls::describe(stream_.native_handle()); }

    void accept() { stream_.handshake(ssl::stream_base::server); }
    void close() { stream_.shutdown(); }

    template <class F> void async_accept(F then) {
        stream_.async_handshake(ssl::stream_base::server, std::move(then));
    }
    template <class F> void async_close(F then) { stream_.async_shutdown(std::move(then)); }
};
