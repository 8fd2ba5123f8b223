// A connection of libwebsockets, client or server: it says what the conversation has when the library says that it may.
#pragma once

#include "linerate/conversation.hpp"

#include <libwebsockets.h>

class Connection {
public:
    // `whole`: the conversation wants whole messages, in one piece.
    Connection(linerate::Conversation& conversation, bool whole) : conversation_(conversation), whole_(whole) {}

    void received(lws* wsi, std::string_view bytes) {
        if (!whole_) {
            conversation_.receive(bytes);
        } else {
            if (ended_) message_.clear();
            message_ += bytes;
            ended_ = lws_is_final_fragment(wsi) && lws_remaining_packet_payload(wsi) == 0;
            if (!ended_) return;
            conversation_.receive(message_);
        }
        wish(wsi);
    }

    // Asks to write if there is something to say; true if there is.
    bool wish(lws* wsi) {
        if (piece_.empty()) piece_ = conversation_.next();
        if (!piece_.empty()) lws_callback_on_writable(wsi);
        return !piece_.empty();
    }

    // The library lets it write: one message. False if the connection is broken.
    bool write(lws* wsi) {
        if (piece_.empty()) return true;
        // The library wants room in front, and masks in place.
        buffer_.resize(LWS_PRE + piece_.size());
        std::copy(piece_.begin(), piece_.end(), buffer_.begin() + LWS_PRE);
        auto data = reinterpret_cast<unsigned char*>(buffer_.data()) + LWS_PRE;
        if (lws_write(wsi, data, piece_.size(), LWS_WRITE_BINARY) < int(piece_.size())) return false;
        piece_ = {};
        return true;
    }

private:
    linerate::Conversation& conversation_;
    bool whole_, ended_ = true;
    std::string message_;
    std::string_view piece_;
    std::vector<char> buffer_;
};

// What both ends ask of the library: it is silent, and has no extensions and no subprotocol of the wire.
inline lws_context_creation_info settings(const linerate::Spec& spec, const lws_protocols* protocols, void* user) {
    lws_set_log_level(0, nullptr);
    lws_context_creation_info info{};
    info.port = CONTEXT_PORT_NO_LISTEN;
    info.protocols = protocols;
    info.user = user;
    info.gid = info.uid = -1;
    info.timeout_secs = info.connect_timeout_secs = unsigned(spec.timeout_ns / 1'000'000'000 + 1);
    if (auto bytes = spec.option("service-buffer"); !bytes.empty()) info.pt_serv_buf_size = unsigned(std::stoul(bytes));
    if (spec.layer == "wss") info.options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
    return info;
}

inline void need_one_thread(const linerate::Spec& spec) {
    linerate::need_conversation(spec);
    if (spec.threads > 1) throw linerate::Unsupported("several threads: Debian's libwebsockets has one service thread");
}
