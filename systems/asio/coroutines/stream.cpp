// The client of a `stream`: it writes, reads, or both, and counts what arrived, at either end.
#include "abilities.hpp"
#include "coroutine.hpp"
#include "peers.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

using namespace linerate;
using namespace net::experimental::awaitable_operators;

namespace {

struct Flow {
    explicit Flow(const Spec& spec) : direction(spec), content(spec.size), size(spec.size), bytes(spec.bytes) {
        need(bytes > 0, "\"bytes\" is missing");
    }
    Direction direction;
    Content content;
    std::size_t size;
    std::uint64_t bytes;

    std::size_t length(std::uint64_t done) const { return std::size_t(std::min<std::uint64_t>(size, bytes - done)); }
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
awaitable<bool> write(Peer& peer, const Flow& flow) {
    for (std::uint64_t sent = 0; sent < flow.bytes;) {
        auto piece = net::buffer(flow.content.at(sent), flow.length(sent));
        auto [error, length] = co_await net::async_write(peer.socket, piece, Token());
        if (error) co_return lost(peer, error, 0), false;
        sent += length;
        peer.began = now_ns();
    }
    error_code ignored;
    peer.socket.shutdown(tcp::socket::shutdown_send, ignored);
    co_return true;
}

awaitable<bool> read(Peer& peer, const Flow& flow, std::uint64_t& good) {
    std::vector<char> data(flow.size);
    for (std::uint64_t received = 0; received < flow.bytes;) {
        auto [error, length] = co_await peer.socket.async_read_some(net::buffer(data.data(), flow.length(received)), Token());
        if (error) co_return lost(peer, error, received), false;
        good += flow.content.good(received, data.data(), length);
        received += length;
        peer.began = now_ns();
    }
    co_return true;
}

awaitable<void> stream(Client& client, Peer& peer, const Flow& flow) {
    std::array<char, 8> number = to_wire(flow.bytes);
    std::uint64_t good = 0;
    bool whole = true;
    peer.began = now_ns();
    if (flow.direction.client_reads) {
        auto [error, length] = co_await net::async_write(peer.socket, net::buffer(number), Token());
        if (error) lost(peer, error, 0), whole = false;
        else if (!flow.direction.client_writes) whole = co_await read(peer, flow, good);
        else {
            auto [wrote, got] = co_await (write(peer, flow) && read(peer, flow, good));
            whole = wrote && got;
        }
    } else {
        whole = co_await write(peer, flow);
    }
    if (whole && flow.direction.client_writes) {
        auto [error, length] = co_await net::async_read(peer.socket, net::buffer(number), Token());
        if (error) lost(peer, error, length), whole = false;
    }
    if (whole) {
        auto now = now_ns();
        if (flow.direction.client_reads) peer.account.add_stream(client.spec, good, now);
        if (flow.direction.client_writes) peer.account.add_stream(client.spec, from_wire(number), now);
    }
    peer.began = 0;
    client.ended();
}

} // namespace

void drive_stream(const Spec& spec) {
    Flow flow(spec);
    Client client(spec);
    if (client.connect_all())
        client.run_window(client.peers.size(), [&](Peer& peer) {
            co_spawn(peer.socket.get_executor(), stream(client, peer, flow), detached);
        });
    client.done();
}
