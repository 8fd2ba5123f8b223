#include "endpoints.hpp"

#include <boost/asio/ssl/context.hpp>
#include <websocketpp/config/asio_no_tls.hpp>
#include <websocketpp/config/asio_no_tls_client.hpp>

#include "client.hpp"
#include "server.hpp"

void serve_websocket(const linerate::Spec& spec) {
    Server<wspp::config::asio>(spec, [](auto&) {});
}

void drive_websocket(const linerate::Spec& spec) {
    linerate::need_protocol(spec, false);
    Driver<wspp::config::asio_client>(spec, [](auto&) {}, [](auto&) {}, [](auto&) { return std::string(); });
}
