// An HTTP server as in Asio's C++20 examples: one coroutine for each connection.
#include "linerate/event_loop.hpp"
#include "coroutine.hpp"
#include "linerate/protocol_spec.hpp"

using namespace linerate;

namespace {

awaitable<void> answer(Socket socket, const http::Answers& answers) {
    std::array<char, http::buffer> data;
    for (std::size_t filled = 0;;) {
        auto [error, length] = co_await socket.async_read_some(net::buffer(data) + filled);
        if (error) co_return;
        filled += length;
        for (http::Request request; (request = http::parse({data.data(), filled})).state != http::Request::incomplete;) {
            std::string_view bytes = http::bad_request;
            if (request.state == http::Request::good) bytes = request.keep ? answers.keep : answers.close;
            auto [lost, written] = co_await net::async_write(socket, net::buffer(bytes));
            if (lost || !request.keep) co_return;
            filled -= request.length;
            std::memmove(data.data(), data.data() + request.length, filled);
        }
    }
}

} // namespace

void serve_http(const Spec& spec) {
    http::Answers answers(spec.size);
    serve_coroutines(spec, [&](Socket socket) { return answer(std::move(socket), answers); });
}

void loop_http(const Spec& spec) {
    need_protocol(spec, true);
    OneLoop both(spec);
    http::Answers answers(spec.size);
    loop_coroutines(both, [&](Socket socket) { return answer(std::move(socket), answers); });
}
