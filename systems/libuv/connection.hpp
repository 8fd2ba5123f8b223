// A TCP connection that carries a protocol (sdk/cpp/linerate/protocol_spec.hpp).
#pragma once

#include "linerate/protocol_spec.hpp"
#include "socket.hpp"

class Connection : public Socket {
public:
    explicit Connection(const linerate::Spec& spec)
        : data_(linerate::read_size(spec)), is_bulk_(spec.workload == "stream") {}

    // Begins to read and write. The connection has been established.
    void start() {
        writing_ = paused_ = false;
        read();
        step();
    }
    void step() {
        if (closing()) return;
        while (!writing_) {
            auto piece = protocol().next();
            if (piece.empty()) break;
            // Messages are tried at once. Content goes through libuv's queue, which takes a turn of the loop.
            if (is_bulk_) writing_ = true, write(piece.data(), piece.size());
            else writing_ = !send(piece.data(), piece.size());
            if (closing()) return;
        }
        if (!writing_ && protocol().over()) return end(0);
        if (!writing_ && protocol().shuts_down()) uv_shutdown(&shutdown_, stream(), nullptr);
        // One buffer: without `is_duplex` nothing is read before everything is written.
        bool pauses = writing_ && !protocol().is_duplex();
        if (std::exchange(paused_, pauses) == pauses) return;
        pauses ? pause() : read();
    }

protected:
    virtual linerate::Protocol& protocol() = 0;
    // The connection is over: 0, or libuv's error.
    virtual void end(ssize_t status) = 0;

private:
    uv_buf_t room() override { return uv_buf_init(data_.data(), unsigned(data_.size())); }
    void got(ssize_t length) override {
        if (length > 0) protocol().receive({data_.data(), std::size_t(length)});
        else if (length != UV_EOF || !protocol().end()) return end(length);
        step();
    }
    void wrote(int status) override {
        if (status < 0) return end(status);
        writing_ = false;
        step();
    }

    std::vector<char> data_;
    const bool is_bulk_;
    bool writing_ = false, paused_ = false;
    uv_shutdown_t shutdown_;
};
