// An HTTP server as in Asio's tutorial: a session that its handlers keep alive.
#include "linerate/event_loop.hpp"
#include "sessions.hpp"

using namespace linerate;

namespace {

class Http : public std::enable_shared_from_this<Http> {
public:
    Http(TcpSocket socket, const http::Answers& answers) : socket_(std::move(socket)), answers_(answers) {}

    void read() {
        auto room = net::buffer(data_) + filled_;
        socket_.async_read_some(room, [this, self = shared_from_this()](error_code error, std::size_t length) {
            if (error) return;
            filled_ += length;
            answer();
        });
    }

private:
    void answer() {
        auto request = http::parse({data_.data(), filled_});
        if (request.state == http::Request::incomplete) return read();
        if (request.state == http::Request::bad) return write(http::bad_request, request);
        write(request.keep ? answers_.keep : answers_.close, request);
    }
    void write(std::string_view bytes, http::Request request) {
        auto written = [this, self = shared_from_this(), request](error_code error, std::size_t) {
            if (error || !request.keep) return;
            filled_ -= request.length;
            if (filled_ == 0) return read();
            std::memmove(data_.data(), data_.data() + request.length, filled_);
            answer();
        };
        net::async_write(socket_, net::buffer(bytes), written);
    }

    TcpSocket socket_;
    const http::Answers& answers_;
    std::size_t filled_ = 0;
    std::array<char, http::buffer> data_;
};

} // namespace

void serve_http(const Spec& spec) {
    http::Answers answers(spec.size);
    serve(spec, [&](TcpSocket socket) { std::make_shared<Http>(std::move(socket), answers)->read(); });
}

void loop_http(const Spec& spec) {
    need_protocol(spec, true);
    OneLoop both(spec);
    http::Answers answers(spec.size);
    drive_sessions<PlainTransport>(both.client, both.loops, [&] {
        std::make_shared<Http>(both.accept(), answers)->read();
    });
}
