// The server, as the library's minimal-ws-server: one callback for all events.
#include "connection.hpp"
#include "endpoints.hpp"
#include "linerate/tls.hpp"

using namespace linerate;

namespace {

struct Service {
    explicit Service(const Spec& spec) : spec(spec), content(spec.workload == "stream" ? spec.size : 0) {}
    const Spec& spec;
    Content content;
};

struct Session {
    explicit Session(Service& service)
        : protocol(make_server(service.spec, service.content)),
          connection(*protocol, service.spec.workload != "stream") {}
    std::unique_ptr<Protocol> protocol;
    Connection connection;
};

int on_event(lws* wsi, lws_callback_reasons reason, void* user, void* in, std::size_t length) {
    auto& service = *static_cast<Service*>(lws_context_user(lws_get_context(wsi)));
    auto session = static_cast<Session**>(user);
    switch (reason) {
        case LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS:
            if (service.spec.layer == "wss") tls::configure_server(static_cast<SSL_CTX*>(user), service.spec);
            return 0;
        case LWS_CALLBACK_ESTABLISHED:
            *session = new Session(service);
            return 0;
        case LWS_CALLBACK_CLOSED:
            delete std::exchange(*session, nullptr);
            return 0;
        case LWS_CALLBACK_RECEIVE:
            (*session)->connection.received(wsi, {static_cast<const char*>(in), length});
            return 0;
        case LWS_CALLBACK_SERVER_WRITEABLE:
            if (!(*session)->connection.write(wsi)) return -1;
            (*session)->connection.request_write(wsi);
            return 0;
        default:
            return 0;
    }
}

} // namespace

void serve(const Spec& spec) {
    need_one_thread(spec);
    Service service(spec);
    const lws_protocols protocols[] = {{"linerate", on_event, sizeof(Session*), 0, 0, nullptr, 0}, {}};
    auto info = settings(spec, protocols, &service);
    info.port = spec.listen.port;
    info.iface = spec.listen.ip.c_str();
    if (spec.layer == "wss") {
        info.server_ssl_cert_mem = spec.tls.certificate.data();
        info.server_ssl_cert_mem_len = unsigned(spec.tls.certificate.size());
        info.server_ssl_private_key_mem = spec.tls.key.data();
        info.server_ssl_private_key_mem_len = unsigned(spec.tls.key.size());
    }
    auto context = lws_create_context(&info);
    if (!context) throw std::runtime_error("libwebsockets cannot listen at " + spec.listen.ip);
    auto port = lws_get_vhost_listen_port(lws_get_vhost_by_name(context, "default"));
    emit_ready(spec.listen.ip, std::uint16_t(port));
    while (lws_service(context, 0) >= 0) {}
    throw std::runtime_error("lws_service failed");
}
