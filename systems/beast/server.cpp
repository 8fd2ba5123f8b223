// An HTTP server as Beast's own example http_server_async writes it: tcp_stream with its timeout, Beast's parser,
// Beast's messages. The page is a span_body, so that it is not copied for each answer.
#include "server.hpp"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/span_body.hpp>
#include <boost/beast/http/write.hpp>

#include <memory>
#include <thread>

namespace beast = boost::beast;
namespace http = beast::http;
namespace net = boost::asio;
using tcp = net::ip::tcp;
using linerate::Spec;

namespace {

class Session : public std::enable_shared_from_this<Session> {
public:
    Session(tcp::socket&& socket, const std::string& page) : stream_(std::move(socket)), page_(page) {}

    // On its own executor from the first step on.
    void start() { net::dispatch(stream_.get_executor(), beast::bind_front_handler(&Session::read, shared_from_this())); }

private:
    void read() {
        request_ = {};
        stream_.expires_after(std::chrono::seconds(30)); // the example's
        http::async_read(stream_, buffer_, request_, beast::bind_front_handler(&Session::on_read, shared_from_this()));
    }
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

class Listener {
public:
    Listener(const Spec& spec, const std::string& page)
        : threads_(spec.threads), page_(page), context_(int(threads_)), acceptor_(context_), rest_(context_) {
        tcp::endpoint where(net::ip::make_address(spec.listen.ip), spec.listen.port);
        acceptor_.open(where.protocol());
        acceptor_.set_option(net::socket_base::reuse_address(true));
        acceptor_.bind(where);
        acceptor_.listen(linerate::backlog);
        linerate::emit_ready(spec.listen.ip, acceptor_.local_endpoint().port());
        accept();
        std::vector<std::thread> others;
        for (std::uint32_t i = 1; i < threads_; ++i) others.emplace_back([this] { context_.run(); });
        context_.run();
        for (auto& each : others) each.join();
    }

private:
    // A strand for each connection where there are several threads.
    net::any_io_executor executor() {
        if (threads_ > 1) return net::make_strand(context_);
        return context_.get_executor();
    }
    void accept() {
        acceptor_.async_accept(executor(), [this](beast::error_code error, tcp::socket socket) {
            if (error) return rest();
            socket.set_option(tcp::no_delay(true), error);
            std::make_shared<Session>(std::move(socket), page_)->start();
            accept();
        });
    }
    // There was no descriptor for a waiting connection.
    void rest() {
        rest_.expires_after(std::chrono::milliseconds(10));
        rest_.async_wait([this](beast::error_code) { accept(); });
    }

    std::uint32_t threads_;
    const std::string& page_;
    net::io_context context_;
    tcp::acceptor acceptor_;
    net::steady_timer rest_;
};

} // namespace

void serve_http(const Spec& spec) {
    auto page = linerate::page(spec.size);
    Listener(spec, page);
}
