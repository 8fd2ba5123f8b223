// The client, as the library's minimal-ws-client: one callback for all events of all connections.
#include "connection.hpp"
#include "endpoints.hpp"
#include "linerate/tls.hpp"

using namespace linerate;

namespace {

class Driver {
public:
    explicit Driver(const Spec& spec) : spec_(spec), clients_(spec) {
        if (spec.layer == "wss") {
            secure_.reset(SSL_CTX_new(TLS_client_method()));
            tls::configure_client(secure_.get(), spec);
        }
        const lws_protocols protocols[] = {{"linerate", on_event, 0, 0, 0, nullptr, 0}, {}};
        auto info = settings(spec, protocols, this);
        info.provided_client_ssl_ctx = secure_.get();
        context_ = lws_create_context(&info);
        if (!context_) throw std::runtime_error("lws_create_context failed");
        for (auto& client : clients_.all) all_.push_back(std::make_unique<One>(*client));
        auto dog = clients_.watch();
        opening_ = running_ = all_.size();
        for (auto& one : all_) connect(*one);
        while (running_ > 0 && lws_service(context_, 0) >= 0) {}
        clients_.window.done(clients_.all);
        lws_context_destroy(context_);
    }

private:
    struct One {
        explicit One(Client& client) : client(client), connection(client, false) {}
        Client& client;
        Connection connection;
        lws* wsi = nullptr; // while it is open
        bool over = false;  // its end is reported, which may be before the connecting call returns
    };
    struct FreeContext {
        void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    };

    void connect(One& one) {
        lws_client_connect_info info{};
        info.context = context_;
        info.address = spec_.connect.ip.c_str();
        info.port = spec_.connect.port;
        info.path = "/";
        info.host = spec_.layer == "wss" ? spec_.tls.name.c_str() : info.address;
        info.origin = info.host;
        info.local_protocol_name = "linerate";
        info.opaque_user_data = &one;
        if (spec_.layer == "wss") info.ssl_connection = LCCSCF_USE_SSL;
        auto& turn = spec_.sources;
        if (!turn.empty()) info.iface = turn[turn_++ % turn.size()].c_str();
        auto wsi = lws_client_connect_via_info(&info);
        if (!wsi) return refused(one, "");
        if (!one.over) one.client.watched.watch(lws_get_socket_fd(wsi));
    }

    static int on_event(lws* wsi, lws_callback_reasons reason, void*, void* in, std::size_t length) {
        auto one = static_cast<One*>(lws_get_opaque_user_data(wsi));
        auto self = static_cast<Driver*>(lws_context_user(lws_get_context(wsi)));
        if (!one) return 0;
        switch (reason) {
            case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
                self->refused(*one, in ? std::string_view(static_cast<const char*>(in), length) : std::string_view());
                return 0;
            case LWS_CALLBACK_CLIENT_ESTABLISHED:
                one->wsi = wsi;
                if (self->secure_) self->clients_.window.set_tls(tls::describe(lws_get_ssl(wsi)));
                self->settled();
                return 0;
            case LWS_CALLBACK_CLIENT_RECEIVE:
                one->connection.received(wsi, {static_cast<const char*>(in), length});
                if (one->client.over()) lws_callback_on_writable(wsi);
                return 0;
            case LWS_CALLBACK_CLIENT_WRITEABLE:
                return self->write(*one);
            case LWS_CALLBACK_CLIENT_CLOSED:
                one->client.watched.release();
                one->client.fail(0, true);
                self->ended(*one);
                return 0;
            default:
                return 0;
        }
    }

    int write(One& one) {
        if (!one.connection.write(one.wsi)) return -1;
        if (one.connection.request_write(one.wsi) || !one.client.over()) return 0;
        lws_close_reason(one.wsi, LWS_CLOSE_STATUS_NORMAL, nullptr, 0);
        return -1;
    }

    // A connection is established or has failed. The last one opens the window and starts the established ones.
    void settled() {
        if (--opening_ != 0) return;
        clients_.window.open();
        for (auto& one : all_)
            if (one->wsi) one->connection.request_write(one->wsi);
    }
    // `why` is libwebsockets' text; it has no error number.
    void refused(One& one, std::string_view why) {
        if (one.over) return;
        auto contains = [why](std::string_view words) { return why.find(words) != why.npos; };
        bool tls = contains("tls") || contains("SSL") || contains("cert");
        one.client.watched.release();
        one.client.fail_connect(tls ? Kind::tls_failed : contains("HS:") ? Kind::malformed : Kind::connect_failed);
        ended(one);
        settled();
    }
    void ended(One& one) {
        if (!std::exchange(one.over, true)) --running_;
        one.wsi = nullptr;
    }

    const Spec& spec_;
    Clients clients_;
    std::unique_ptr<SSL_CTX, FreeContext> secure_;
    lws_context* context_ = nullptr;
    std::vector<std::unique_ptr<One>> all_;
    std::size_t opening_ = 0, running_ = 0, turn_ = 0;
};

} // namespace

void drive(const Spec& spec) {
    need_one_thread(spec);
    Driver{spec};
}
