// Servers: one coroutine accepts, one serves each connection.
#include "linerate/event_loop.hpp"
#include "net.hpp"

using namespace linerate;

namespace {

capy::task<> echo(corosio::tcp_socket socket, const Spec&) {
    auto data = std::make_unique<std::array<char, echo_buffer>>();
    for (;;) {
        auto [error, length] = co_await socket.read_some(capy::mutable_buffer(data->data(), data->size()));
        if (error) co_return;
        auto [lost, written] = co_await capy::write(socket, capy::const_buffer(data->data(), length));
        if (lost) co_return;
    }
}

capy::task<> answer(corosio::tcp_socket socket, const http::Answers& answers) {
    std::array<char, http::buffer> data;
    for (std::size_t filled = 0;;) {
        auto [error, length] = co_await socket.read_some(capy::mutable_buffer(data.data() + filled, data.size() - filled));
        if (error) co_return;
        filled += length;
        for (http::Request request; (request = http::parse({data.data(), filled})).state != http::Request::incomplete;) {
            std::string_view bytes = http::bad_request;
            if (request.state == http::Request::good) bytes = request.keep ? answers.keep : answers.close;
            auto [lost, written] = co_await capy::write(socket, capy::const_buffer(bytes.data(), bytes.size()));
            if (lost || !request.keep) co_return;
            filled -= request.length;
            std::memmove(data.data(), data.data() + request.length, filled);
        }
    }
}

// What all connections of a `stream` share.
struct Flow {
    Flow(const Spec& spec, corosio::io_context& context) : direction(spec), size(spec.size), content(spec.size), context(context) {}
    Direction direction;
    std::size_t size;
    Content content;
    corosio::io_context& context;
};

// One connection: two coroutines where both directions are used, and the last one to end sends the count.
struct Stream {
    Stream(corosio::tcp_socket socket, const Flow& flow) : socket(std::move(socket)), flow(flow) {}
    corosio::tcp_socket socket;
    const Flow& flow;
    std::uint64_t good = 0;
    std::atomic<int> directions{0};
};

capy::task<> end_direction(std::shared_ptr<Stream> stream) {
    if (stream->directions.fetch_sub(1) != 1 || !stream->flow.direction.client_writes) co_return;
    auto number = to_wire(stream->good);
    co_await capy::write(stream->socket, capy::const_buffer(number.data(), number.size()));
}

capy::task<> write(std::shared_ptr<Stream> stream, std::uint64_t wanted) {
    auto& flow = stream->flow;
    for (std::uint64_t sent = 0; sent < wanted;) {
        auto length = std::size_t(std::min<std::uint64_t>(flow.size, wanted - sent));
        auto [error, written] = co_await capy::write(stream->socket, capy::const_buffer(flow.content.at(sent), length));
        if (error) co_return;
        sent += written;
    }
    co_await end_direction(stream);
}

capy::task<> read(std::shared_ptr<Stream> stream) {
    std::vector<char> data(stream->flow.size);
    for (std::uint64_t received = 0;;) {
        auto [error, length] = co_await stream->socket.read_some(capy::mutable_buffer(data.data(), data.size()));
        if (error == capy::cond::eof) break;
        if (error) co_return;
        stream->good += stream->flow.content.good(received, data.data(), length);
        received += length;
    }
    co_await end_direction(stream);
}

capy::task<> serve_flow(corosio::tcp_socket socket, const Flow& flow) {
    auto stream = std::make_shared<Stream>(std::move(socket), flow);
    stream->directions = flow.direction.client_reads + flow.direction.client_writes;
    if (!flow.direction.client_reads) co_return co_await read(stream);
    std::array<char, 8> number;
    auto [error, length] = co_await capy::read(stream->socket, capy::mutable_buffer(number.data(), number.size()));
    if (error) co_return;
    if (flow.direction.client_writes) capy::run_async(flow.context.get_executor())(read(stream));
    co_await write(stream, from_wire(number));
}

template <class Shared> using Session = capy::task<> (*)(corosio::tcp_socket, const Shared&);

template <class Shared>
capy::task<> accept(corosio::io_context& context, corosio::tcp_acceptor& acceptor, Session<Shared> session, const Shared& shared) {
    corosio::timer rest(context);
    for (;;) {
        corosio::tcp_socket socket(context);
        auto [error] = co_await acceptor.accept(socket);
        if (error) { // no descriptor, or the peer gave up
            rest.expires_after(std::chrono::milliseconds(10));
            co_await rest.wait();
            continue;
        }
        socket.set_option(corosio::socket_option::no_delay(true));
        capy::run_async(context.get_executor())(session(std::move(socket), shared));
    }
}

template <class Shared> void serve(const Spec& spec, corosio::io_context& context, Session<Shared> session, const Shared& shared) {
    auto where = endpoint(spec.listen.ip, spec.listen.port);
    corosio::tcp_acceptor acceptor(context);
    acceptor.open(where.is_v6() ? corosio::tcp::v6() : corosio::tcp::v4());
    acceptor.set_option(corosio::socket_option::reuse_address(true));
    if (auto error = acceptor.bind(where)) throw std::system_error(error, "bind");
    if (auto error = acceptor.listen(backlog)) throw std::system_error(error, "listen");
    emit_ready(spec.listen.ip, acceptor.local_endpoint().port());
    capy::run_async(context.get_executor())(accept(context, acceptor, session, shared));
    run(context, spec.threads);
}

} // namespace

void serve_http(const Spec& spec) {
    corosio::io_context context(spec.threads);
    serve(spec, context, answer, http::Answers(spec.size));
}
void serve_echo(const Spec& spec) {
    corosio::io_context context(spec.threads);
    serve(spec, context, echo, spec);
}
void serve_stream(const Spec& spec) {
    corosio::io_context context(spec.threads);
    serve(spec, context, serve_flow, Flow(spec, context));
}
