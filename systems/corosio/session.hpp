// A connection that carries a protocol (sdk/cpp/linerate/protocol_spec.hpp), and the coroutines that read and write.
#pragma once

#include "linerate/protocol_spec.hpp"
#include "net.hpp"

#include <functional>

struct Session {
    Session(corosio::io_context& context, corosio::tcp_socket socket, std::shared_ptr<linerate::Protocol> protocol,
            const linerate::Spec& spec)
        : context(context), socket(std::move(socket)), protocol(std::move(protocol)), data(linerate::read_size(spec)) {}

    corosio::io_context& context;
    corosio::tcp_socket socket;
    std::shared_ptr<linerate::Protocol> protocol;
    std::vector<char> data;
    bool writing = false;
};
using SessionPtr = std::shared_ptr<Session>;

// Writes the protocol's next bytes.
inline capy::task<std::error_code> write(SessionPtr session) {
    auto& protocol = *session->protocol;
    session->writing = true;
    for (auto piece = protocol.next(); !piece.empty(); piece = protocol.next()) {
        auto [error, length] = co_await capy::write(session->socket, capy::const_buffer(piece.data(), piece.size()));
        if (error) co_return error;
    }
    session->writing = false;
    // A connection that is gone already fails in its next read.
    if (protocol.shuts_down()) error_of([&] { return session->socket.shutdown(corosio::tcp_socket::shutdown_send); });
    co_return std::error_code();
}
inline capy::task<> write_beside(SessionPtr session) { co_await write(session); }

// The same beside a coroutine that reads.
inline void spawn_write(const SessionPtr& session) {
    if (session->protocol->over()) session->socket.cancel();
    else if (!session->writing) capy::run_async(session->context.get_executor())(write_beside(session));
}

// Runs until the protocol is over at this end, or the connection fails.
inline capy::task<std::error_code> run_protocol(SessionPtr session) {
    auto& protocol = *session->protocol;
    for (std::error_code failure;;) {
        if (protocol.is_duplex()) spawn_write(session);
        else failure = co_await write(session);
        if (failure || protocol.over()) co_return failure;
        auto room = capy::mutable_buffer(session->data.data(), session->data.size());
        auto [error, length] = co_await session->socket.read_some(room);
        if (!error) protocol.receive({session->data.data(), length});
        else if (error != capy::cond::eof || !protocol.end()) co_return error;
    }
}

// Runs a client in this context. One thread establishes all connections, then calls `connected()`; those of the spec
// run the window.
void drive(const linerate::Spec& spec, corosio::io_context& context, const std::function<void()>& connected);
