// The client of a `stream`: it writes, reads, or both, and counts what arrived, at either end.
#include "abilities.hpp"
#include "peers.hpp"

using namespace linerate;

namespace {

struct Flow {
    explicit Flow(const Spec& spec) : direction(spec), content(spec.size) { need(spec.bytes > 0, "\"bytes\" is missing"); }
    Direction direction;
    Content content;
};

struct Stream : StandingPeer {
    Stream(const Spec& spec, const Flow& flow) : spec(spec), flow(flow), data(spec.size) {}

    void begin() override {
        began = now_ns();
        read();
        if (!flow.direction.client_reads) return next();
        number = to_wire(spec.bytes);
        write(number.data(), number.size());
    }

    void next() {
        if (sent < spec.bytes) {
            piece = length(sent);
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
        if (payload()) return uv_buf_init(data.data(), unsigned(length(received)));
        return uv_buf_init(number.data() + counted, unsigned(number.size() - counted));
    }
    void got(ssize_t length) override {
        if (length < 0) return broken(length);
        began = now_ns();
        if (payload()) {
            good += flow.content.good(received, data.data(), std::size_t(length));
            received += std::size_t(length);
            if (!payload() && !flow.direction.client_writes) finish();
        } else {
            counted += std::size_t(length);
            if (counted == number.size()) finish();
        }
    }

    void finish() {
        auto now = now_ns();
        if (flow.direction.client_reads) account.add_stream(spec, good, now);
        if (flow.direction.client_writes) account.add_stream(spec, from_wire(number), now);
        began = 0;
        close();
    }
    void broken(ssize_t status) {
        if (!closing()) fail(status, received); // reading and writing may both find out
        close();
    }
    void timeout() override { broken(UV_ETIMEDOUT); }

    bool payload() const { return flow.direction.client_reads && received < spec.bytes; }
    std::size_t length(std::uint64_t done) const { return std::size_t(std::min<std::uint64_t>(spec.size, spec.bytes - done)); }

    const Spec& spec;
    const Flow& flow;
    std::vector<char> data;
    std::array<char, 8> number;
    uv_shutdown_t shutdown;
    std::size_t piece = 0, counted = 0;
    std::uint64_t sent = 0, received = 0, good = 0;
};

} // namespace

void drive_stream(const Spec& spec) {
    Flow flow(spec);
    Client<Stream> client(spec, [&](auto&, std::size_t) { return std::make_unique<Stream>(spec, flow); });
    if (client.connect_all()) client.run_window();
    client.done();
}
