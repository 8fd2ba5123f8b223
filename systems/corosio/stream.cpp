// The client of a `stream`: it writes, reads, or both, and counts what arrived, at either end.
#include "linerate/event_loop.hpp"
#include "peers.hpp"

using namespace linerate;

namespace {

struct Flow {
    explicit Flow(const Spec& spec) : direction(spec), content(spec.size), client(spec) {}
    Direction direction;
    Content content;
    Client client;

    std::size_t length(std::uint64_t done) const {
        return std::size_t(std::min<std::uint64_t>(client.spec.size, client.spec.bytes - done));
    }
};

// Ends both directions, counted once: cancelling wakes the other one.
void lost(Flow& flow, Peer& peer, std::error_code error, std::uint64_t received) {
    if (peer.over) return;
    peer.over = true;
    peer.fail(error, received);
    peer.socket.cancel();
    flow.client.ended();
}

capy::task<> write(Flow& flow, Peer& peer) {
    for (std::uint64_t sent = 0; sent < flow.client.spec.bytes;) {
        auto piece = capy::const_buffer(flow.content.at(sent), flow.length(sent));
        auto [error, length] = co_await capy::write(peer.socket, piece);
        if (error) co_return lost(flow, peer, error, 0);
        sent += length;
        peer.began = now_ns();
    }
    peer.socket.shutdown(corosio::tcp_socket::shutdown_send);
}

// Reads what was asked for, then the server's count of what was written, each if it comes.
capy::task<> read(Flow& flow, Peer& peer) {
    auto& spec = flow.client.spec;
    std::vector<char> data(spec.size);
    std::array<char, 8> number;
    std::uint64_t good = 0;
    for (std::uint64_t received = 0; flow.direction.client_reads && received < spec.bytes;) {
        auto [error, length] = co_await peer.socket.read_some(capy::mutable_buffer(data.data(), flow.length(received)));
        if (error) co_return lost(flow, peer, error, received);
        good += flow.content.good(received, data.data(), length);
        received += length;
        peer.began = now_ns();
    }
    if (flow.direction.client_writes) {
        auto [error, length] = co_await capy::read(peer.socket, capy::mutable_buffer(number.data(), number.size()));
        if (error) co_return lost(flow, peer, error, length);
    }
    auto now = now_ns();
    if (flow.direction.client_reads) peer.account.add_stream(spec.bytes, good, now);
    if (flow.direction.client_writes) peer.account.add_stream(spec.bytes, from_wire(number), now);
    peer.began = 0;
    flow.client.ended();
}

capy::task<> begin(Flow& flow, Peer& peer) {
    peer.began = now_ns();
    if (flow.direction.client_reads) {
        auto number = to_wire(flow.client.spec.bytes);
        auto [error, length] = co_await capy::write(peer.socket, capy::const_buffer(number.data(), number.size()));
        if (error) co_return lost(flow, peer, error, 0);
    }
    auto executor = flow.client.context.get_executor();
    if (flow.direction.client_writes) capy::run_async(executor)(write(flow, peer));
    co_await read(flow, peer);
}

} // namespace

void drive_stream(const Spec& spec) {
    need(spec.bytes > 0, "\"bytes\" is missing");
    need_one_thread(spec);
    Flow flow(spec);
    if (flow.client.connect_all())
        flow.client.run_window(flow.client.peers.size(), [&] {
            for (auto& peer : flow.client.peers) capy::run_async(flow.client.context.get_executor())(begin(flow, *peer));
        });
    flow.client.done();
}
