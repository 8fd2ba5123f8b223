// The client of a `stream`: it writes, reads, or both, and counts what arrived, at either end.
#include "linerate/event_loop.hpp"
#include "peers.hpp"

using namespace linerate;

namespace {

struct Flow {
    explicit Flow(const Spec& spec) : direction(spec), content(spec.size) { direction.need_end(spec); }
    Direction direction;
    Content content;
};

struct Stream : StandingPeer {
    Stream(const Spec& spec, const Flow& flow, const Window& window)
        : flow(flow), window(window), data(spec.size), payload(flow.direction.client_reads) {}

    void begin() override {
        began = now_ns();
        read();
        if (!flow.direction.client_reads) return next();
        number = to_wire(window.stream_bytes());
        write(number.data(), number.size());
    }

    void next() {
        if (!window.stream_is_over(sent)) {
            piece = window.next_piece(sent);
            return write(flow.content.at(sent), piece);
        }
        uv_shutdown(&shutdown, stream(), nullptr);
    }
    void wrote(int status) override {
        if (status < 0) return broken(status);
        began = now_ns();
        sent += piece; // nothing yet after the number
        if (flow.direction.client_writes) next();
    }

    uv_buf_t room() override {
        if (payload) return uv_buf_init(data.data(), unsigned(window.next_piece(received)));
        return uv_buf_init(number.data() + counted, unsigned(number.size() - counted));
    }
    void got(ssize_t length) override {
        if (length < 0) return broken(length);
        began = now_ns();
        if (payload) {
            good += flow.content.good(received, data.data(), std::size_t(length));
            received += std::size_t(length);
            payload = !window.stream_is_over(received);
            if (!payload && !flow.direction.client_writes) finish();
        } else {
            counted += std::size_t(length);
            if (counted == number.size()) finish();
        }
    }

    void finish() {
        auto now = now_ns();
        if (flow.direction.client_reads) account.add_stream(window.wanted(received), good, now);
        if (flow.direction.client_writes) account.add_stream(window.wanted(sent), from_wire(number), now);
        began = 0;
        close();
    }
    void broken(ssize_t status) {
        if (!closing()) fail(status, received); // reading and writing may both find out
        close();
    }
    void timeout() override { broken(UV_ETIMEDOUT); }

    const Flow& flow;
    const Window& window;
    std::vector<char> data;
    bool payload; // is what is read next; else the server's number
    std::array<char, 8> number;
    uv_shutdown_t shutdown;
    std::size_t piece = 0, counted = 0;
    std::uint64_t sent = 0, received = 0, good = 0;
};

} // namespace

void drive_stream(const Spec& spec) {
    Flow flow(spec);
    Client<Stream> client(spec, [&](auto& client, std::size_t) { return std::make_unique<Stream>(spec, flow, client.window); });
    if (client.connect_all()) client.run_window();
    client.done();
}
