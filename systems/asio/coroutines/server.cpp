// Servers as Asio's C++20 examples write them: one coroutine for each connection.
#include "linerate/event_loop.hpp"
#include "coroutine.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

using namespace linerate;
using namespace net::experimental::awaitable_operators;

namespace {

awaitable<void> echo(Socket socket, const Spec&) {
    std::array<char, echo_buffer> data;
    for (;;) {
        auto [error, length] = co_await socket.async_read_some(net::buffer(data));
        if (error) co_return;
        auto [lost, written] = co_await net::async_write(socket, net::buffer(data, length));
        if (lost) co_return;
    }
}

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

// What all connections of a `stream` share.
struct Flow {
    explicit Flow(const Spec& spec) : direction(spec), size(spec.size), content(spec.size) {}
    Direction direction;
    std::size_t size;
    Content content;
};

awaitable<void> write(Socket& socket, const Flow& flow, std::uint64_t wanted) {
    for (std::uint64_t sent = 0; sent < wanted;) {
        auto length = std::size_t(std::min<std::uint64_t>(flow.size, wanted - sent));
        auto [error, written] = co_await net::async_write(socket, net::buffer(flow.content.at(sent), length));
        if (error) co_return;
        sent += written;
    }
}

// How many good bytes came before the end.
awaitable<std::uint64_t> read(Socket& socket, const Flow& flow) {
    std::vector<char> data(flow.size);
    for (std::uint64_t received = 0, good = 0;;) {
        auto [error, length] = co_await socket.async_read_some(net::buffer(data));
        if (error) co_return good;
        good += flow.content.good(received, data.data(), length);
        received += length;
    }
}

awaitable<void> stream(Socket socket, const Flow& flow) {
    std::array<char, 8> number;
    std::uint64_t wanted = 0, good = 0;
    if (flow.direction.client_reads) {
        auto [error, length] = co_await net::async_read(socket, net::buffer(number));
        if (error) co_return;
        wanted = from_wire(number);
    }
    if (!flow.direction.client_writes) co_return co_await write(socket, flow, wanted);
    if (flow.direction.client_reads) good = co_await (read(socket, flow) && write(socket, flow, wanted));
    else good = co_await read(socket, flow);
    number = to_wire(good);
    co_await net::async_write(socket, net::buffer(number));
}

template <class Shared> using Session = awaitable<void> (*)(Socket, const Shared&);

template <class Shared>
awaitable<void> accept(net::io_context& context, Acceptor acceptor, std::uint32_t threads, Session<Shared> session, const Shared& shared) {
    for (;;) {
        auto executor = connection_executor(context, threads);
        auto [error, socket] = co_await acceptor.async_accept(executor);
        if (error) {
            co_await Timer(context, accept_rest).async_wait();
            continue;
        }
        socket.set_option(tcp::no_delay(true), error);
        co_spawn(executor, session(std::move(socket), shared), detached);
    }
}

template <class Shared> void serve(const Spec& spec, Session<Shared> session, const Shared& shared) {
    net::io_context context(int(spec.threads));
    co_spawn(context, accept(context, Acceptor(listen(context, spec)), spec.threads, session, shared), detached);
    run(context, spec.threads);
}

} // namespace

void serve_http(const Spec& spec) { serve(spec, answer, http::Answers(spec.size)); }
void serve_echo(const Spec& spec) { serve(spec, echo, spec); }
void serve_stream(const Spec& spec) { serve(spec, stream, Flow(spec)); }
