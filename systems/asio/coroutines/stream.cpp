// The client of a `stream`: it writes, reads, or both, and counts what arrived, at either end.
#include "linerate/event_loop.hpp"
#include "coroutine.hpp"
#include "peers.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

using namespace linerate;
using namespace net::experimental::awaitable_operators;

namespace {

struct Flow {
    Flow(const Spec& spec, const Window& window) : direction(spec), content(spec.size), size(spec.size), window(window) {
        direction.need_end(spec);
    }
    Direction direction;
    Content content;
    std::size_t size;
    const Window& window;
};

// What one connection has moved.
struct Moved {
    std::uint64_t sent = 0, received = 0, good = 0;
};

// Ends both directions, counted once: closing the socket wakes the other one.
void lost(Peer& peer, error_code error, std::uint64_t received) {
    if (peer.over) return;
    peer.over = true;
    peer.fail(error, received);
    error_code ignored;
    peer.socket.close(ignored);
}

// Each returns false if the connection is lost.
awaitable<bool> write(Peer& peer, const Flow& flow, std::uint64_t& sent) {
    while (!flow.window.stream_is_over(sent)) {
        auto piece = net::buffer(flow.content.at(sent), flow.window.next_piece(sent));
        auto [error, length] = co_await net::async_write(peer.socket, piece, Token());
        if (error) co_return lost(peer, error, 0), false;
        sent += length;
        peer.began = now_ns();
    }
    error_code ignored;
    peer.socket.shutdown(tcp::socket::shutdown_send, ignored);
    co_return true;
}

awaitable<bool> read(Peer& peer, const Flow& flow, Moved& moved) {
    std::vector<char> data(flow.size);
    while (!flow.window.stream_is_over(moved.received)) {
        auto room = net::buffer(data.data(), flow.window.next_piece(moved.received));
        auto [error, length] = co_await peer.socket.async_read_some(room, Token());
        if (error) co_return lost(peer, error, moved.received), false;
        moved.good += flow.content.good(moved.received, data.data(), length);
        moved.received += length;
        peer.began = now_ns();
    }
    co_return true;
}

awaitable<void> stream(Client& client, Peer& peer, const Flow& flow) {
    std::array<char, 8> number = to_wire(flow.window.stream_bytes());
    Moved moved;
    bool whole = true;
    peer.began = now_ns();
    if (flow.direction.client_reads) {
        auto [error, length] = co_await net::async_write(peer.socket, net::buffer(number), Token());
        if (error) lost(peer, error, 0), whole = false;
        else if (!flow.direction.client_writes) whole = co_await read(peer, flow, moved);
        else {
            auto [wrote, got] = co_await (write(peer, flow, moved.sent) && read(peer, flow, moved));
            whole = wrote && got;
        }
    } else {
        whole = co_await write(peer, flow, moved.sent);
    }
    if (whole && flow.direction.client_writes) {
        auto [error, length] = co_await net::async_read(peer.socket, net::buffer(number), Token());
        if (error) lost(peer, error, length), whole = false;
    }
    if (whole) {
        auto now = now_ns();
        if (flow.direction.client_reads) peer.account.add_stream(flow.window.wanted(moved.received), moved.good, now);
        if (flow.direction.client_writes) peer.account.add_stream(flow.window.wanted(moved.sent), from_wire(number), now);
    }
    peer.began = 0;
    client.ended();
}

} // namespace

void drive_stream(const Spec& spec) {
    Client client(spec);
    Flow flow(spec, client.window);
    if (client.connect_all())
        client.run_window(client.peers.size(), [&](Peer& peer) {
            co_spawn(peer.socket.get_executor(), stream(client, peer, flow), detached);
        });
    client.done();
}
