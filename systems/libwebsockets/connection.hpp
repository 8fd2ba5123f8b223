// A connection of libwebsockets, client or server. It sends one message each time the library reports it as writable.
#pragma once

#include "linerate/protocol_spec.hpp"

#include <libwebsockets.h>

class Connection {
public:
    // `whole`: the protocol receives whole messages.
    Connection(linerate::Protocol& protocol, bool whole) : protocol_(protocol), whole_(whole) {}

    void received(lws* wsi, std::string_view bytes) {
        if (!whole_) {
            protocol_.receive(bytes);
        } else {
            if (ended_) message_.clear();
            message_ += bytes;
            ended_ = lws_is_final_fragment(wsi) && lws_remaining_packet_payload(wsi) == 0;
            if (!ended_) return;
            protocol_.receive(message_);
        }
        request_write(wsi);
    }

    // Requests a writable callback if there is something to send; true if there is.
    bool request_write(lws* wsi) {
        if (piece_.empty()) piece_ = protocol_.next();
        if (!piece_.empty()) lws_callback_on_writable(wsi);
        return !piece_.empty();
    }

    // The connection is writable: sends one message. False if the connection is broken.
    bool write(lws* wsi) {
        if (piece_.empty()) return true;
        // The library needs room in front, and masks in place.
        buffer_.resize(LWS_PRE + piece_.size());
        std::copy(piece_.begin(), piece_.end(), buffer_.begin() + LWS_PRE);
        auto data = reinterpret_cast<unsigned char*>(buffer_.data()) + LWS_PRE;
        if (lws_write(wsi, data, piece_.size(), LWS_WRITE_BINARY) < int(piece_.size())) return false;
        piece_ = {};
        return true;
    }

private:
    linerate::Protocol& protocol_;
    bool whole_, ended_ = true;
    std::string message_;
    std::string_view piece_;
    std::vector<char> buffer_;
};

// The library's settings at both ends: no log, no extensions, no subprotocol.
inline lws_context_creation_info settings(const linerate::Spec& spec, const lws_protocols* protocols, void* user) {
    lws_set_log_level(0, nullptr);
    lws_context_creation_info info{};
    info.port = CONTEXT_PORT_NO_LISTEN;
    info.protocols = protocols;
    info.user = user;
    info.gid = info.uid = -1;
    info.timeout_secs = info.connect_timeout_secs = unsigned(spec.timeout_ns / 1'000'000'000 + 1);
    info.pt_serv_buf_size = unsigned(linerate::number_option(spec, "service-buffer", 0, 1, 1 << 30));
    if (spec.layer == "wss") info.options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
    return info;
}

inline void need_one_thread(const linerate::Spec& spec) {
    linerate::need_protocol(spec, true);
    if (spec.threads > 1) throw linerate::Unsupported("several threads: Debian's libwebsockets has one service thread");
}
