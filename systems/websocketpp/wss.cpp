#include "endpoints.hpp"
#include "linerate/tls.hpp"

#include <websocketpp/config/asio.hpp>
#include <websocketpp/config/asio_client.hpp>

#include "client.hpp"
#include "server.hpp"

namespace {

// The library's settings but for one: how long it waits for the peer's close_notify after the WebSocket is closed. The default
// of 5 s always passes with Beast's client (NOTES.md).
struct ServerConfig : wspp::config::asio_tls {
    struct transport_config : wspp::config::asio_tls::transport_config {
        static const long timeout_socket_shutdown = 100; // ms
    };
    using transport_type = wspp::transport::asio::endpoint<transport_config>;
};

// One context for all connections of the process.
template <class Configure> auto secured(const linerate::Spec& spec, Configure configure) {
    auto context = std::make_shared<boost::asio::ssl::context>(boost::asio::ssl::context::tls);
    configure(context->native_handle(), spec);
    return [context](auto& endpoint) { endpoint.set_tls_init_handler([context](wspp::connection_hdl) { return context; }); };
}

} // namespace

void serve_wss(const linerate::Spec& spec) {
    Server<ServerConfig>(spec, secured(spec, linerate::tls::configure_server));
}

void drive_wss(const linerate::Spec& spec) {
    linerate::need_protocol(spec, false);
    auto named = [&spec](auto& connection) { linerate::tls::expect_name(connection.get_socket().native_handle(), spec); };
    auto tls = [](auto& connection) { return linerate::tls::describe(connection.get_socket().native_handle()); };
    Driver<wspp::config::asio_tls_client>(spec, secured(spec, linerate::tls::configure_client), named, tls);
}
