// The client of a `stream`: it writes, reads, or both, and counts what arrived, at either end.
#include "linerate/event_loop.hpp"
#include "peers.hpp"

using namespace linerate;

namespace {

class Flow {
public:
    explicit Flow(const Spec& spec) : direction_(spec), content_(spec.size), client_(spec) {
        direction_.need_end(spec);
        if (client_.connect_all())
            client_.run_window(client_.peers.size(), [this](Peer& peer) {
                auto end = std::make_shared<End>(peer, client_.spec.size);
                peer.began = now_ns();
                if (!direction_.client_reads) return write(end);
                end->number = to_wire(client_.window.stream_bytes());
                net::async_write(peer.socket, net::buffer(end->number), [this, end](error_code error, std::size_t) {
                    if (error) return fail(end, error);
                    read(end);
                    if (direction_.client_writes) write(end);
                });
            });
        client_.done();
    }

private:
    // This end of one connection.
    struct End {
        End(Peer& peer, std::size_t size) : peer(peer), data(size) {}
        Peer& peer;
        std::vector<char> data;
        std::array<char, 8> number;
        std::uint64_t sent = 0, received = 0, good = 0;
    };
    using EndPtr = std::shared_ptr<End>;

    void write(const EndPtr& end) {
        if (client_.window.stream_is_over(end->sent)) {
            error_code ignored;
            end->peer.socket.shutdown(tcp::socket::shutdown_send, ignored);
            if (!direction_.client_reads) read_count(end);
            return;
        }
        auto piece = net::buffer(content_.at(end->sent), client_.window.next_piece(end->sent));
        net::async_write(end->peer.socket, piece, [this, end](error_code error, std::size_t length) {
            if (error) return fail(end, error);
            end->sent += length;
            end->peer.began = now_ns();
            write(end);
        });
    }

    void read(const EndPtr& end) {
        if (client_.window.stream_is_over(end->received)) {
            if (direction_.client_writes) return read_count(end);
            return finish(end, 0);
        }
        auto room = net::buffer(end->data.data(), client_.window.next_piece(end->received));
        end->peer.socket.async_read_some(room, [this, end](error_code error, std::size_t length) {
            end->good += content_.good(end->received, end->data.data(), length);
            end->received += length;
            if (error) return fail(end, error);
            end->peer.began = now_ns();
            read(end);
        });
    }

    // How much of what was sent the server got.
    void read_count(const EndPtr& end) {
        net::async_read(end->peer.socket, net::buffer(end->number), [this, end](error_code error, std::size_t) {
            if (error) return fail(end, error);
            finish(end, from_wire(end->number));
        });
    }

    void finish(const EndPtr& end, std::uint64_t there) {
        auto& account = end->peer.account;
        auto now = now_ns();
        if (direction_.client_reads) account.add_stream(client_.window.wanted(end->received), end->good, now);
        if (direction_.client_writes) account.add_stream(client_.window.wanted(end->sent), there, now);
        end->peer.began = 0;
        client_.ended();
    }

    void fail(const EndPtr& end, error_code error) {
        if (end->peer.over) return;
        end->peer.over = true;
        end->peer.fail(error, end->received);
        error_code ignored;
        end->peer.socket.close(ignored);
        client_.ended();
    }

    Direction direction_;
    Content content_;
    Client client_;
};

} // namespace

void drive_stream(const Spec& spec) { Flow{spec}; }
