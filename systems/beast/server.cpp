// An HTTP server as in Beast's example http_server_async: tcp_stream with its timeout, Beast's parser and messages. The page
// is a span_body, so that it is not copied for each answer.
#include "net.hpp"
#include "server.hpp"

#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/span_body.hpp>
#include <boost/beast/http/write.hpp>

namespace beast = boost::beast;
namespace http = beast::http;
using linerate::Spec;

namespace {

class Session : public std::enable_shared_from_this<Session> {
public:
    Session(tcp::socket&& socket, const std::string& page) : stream_(std::move(socket)), page_(page) {}

    void read() {
        request_ = {};
        stream_.expires_after(std::chrono::seconds(30)); // as in the example
        http::async_read(stream_, buffer_, request_, beast::bind_front_handler(&Session::on_read, shared_from_this()));
    }

private:
    void on_read(beast::error_code error, std::size_t) {
        if (error == http::error::end_of_stream) return close();
        if (error) return;
        bool good = request_.method() == http::verb::get;
        response_ = {good ? http::status::ok : http::status::bad_request, request_.version()};
        response_.keep_alive(good && request_.keep_alive());
        response_.set(http::field::content_type, "text/plain");
        if (good) response_.body() = {page_.data(), page_.size()};
        response_.prepare_payload();
        http::async_write(stream_, response_, beast::bind_front_handler(&Session::on_write, shared_from_this()));
    }
    void on_write(beast::error_code error, std::size_t) {
        if (error) return;
        if (!response_.keep_alive()) return close();
        read();
    }
    void close() {
        beast::error_code ignored;
        stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    }

    beast::tcp_stream stream_;
    const std::string& page_;
    beast::flat_buffer buffer_;
    http::request<http::empty_body> request_;
    http::response<http::span_body<const char>> response_;
};

} // namespace

void serve_http(const Spec& spec) {
    auto page = linerate::page(spec.size);
    serve(spec, [&](tcp::socket socket) { std::make_shared<Session>(std::move(socket), page)->read(); });
}
