// A `stream` over UDP. `single`: a call for each datagram. `batch`: several requests in libuv's queue, which it sends with
// sendmmsg, and a buffer for several datagrams, which it fills with recvmmsg.
#include "linerate/event_loop.hpp"
#include "socket.hpp"

#include <thread>

using namespace linerate;

namespace {

// Datagrams per turn of the loop. One per turn would measure epoll_wait.
constexpr int burst = 16;
// Requests in libuv's queue: it passes up to 20 to one sendmmsg(2).
constexpr int queued = 20;
// Datagrams of one recvmmsg(2): libuv's own limit, in buffers of 64 KiB each.
constexpr std::size_t slots = 20, slot = 65'536;

bool is_batch(const Spec& spec) {
    auto mode = datagram::mode(spec);
    if (mode != "single" && mode != "batch") throw Unsupported("\"options.mode\" " + mode);
    return mode == "batch";
}

using Address = std::array<char, sizeof(sockaddr_in6)>;
Address address_of(const sockaddr* from) {
    Address address{};
    std::memcpy(address.data(), from, from->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    return address;
}

class Server {
public:
    explicit Server(const Spec& spec) : payload_(spec), flows_(payload_), data_(is_batch(spec) ? slots * slot : slot) {
        check(uv_loop_init(&loop_), "uv_loop_init");
        auto address = sockaddr_of(spec.listen.ip, spec.listen.port);
        check(uv_udp_init_ex(&loop_, &udp_, AF_UNSPEC | (is_batch(spec) ? unsigned(UV_UDP_RECVMMSG) : 0)), "uv_udp_init_ex");
        udp_.data = this;
        check(uv_udp_bind(&udp_, as_sockaddr(address), 0), "uv_udp_bind");
        int length = sizeof address;
        check(uv_udp_getsockname(&udp_, reinterpret_cast<sockaddr*>(&address), &length), "uv_udp_getsockname");
        emit_ready(spec.listen.ip, port_of(address));
        check(uv_udp_recv_start(&udp_, room, received), "uv_udp_recv_start");
        uv_run(&loop_, UV_RUN_DEFAULT);
    }

private:
    static void room(uv_handle_t* handle, std::size_t, uv_buf_t* buffer) {
        auto& data = static_cast<Server*>(handle->data)->data_;
        *buffer = uv_buf_init(data.data(), unsigned(data.size()));
    }
    static void received(uv_udp_t* udp, ssize_t length, const uv_buf_t* buffer, const sockaddr* from, unsigned) {
        if (length < 0 || !from) return; // an ICMP answer to an answer of this server, or nothing more to read
        auto& flows = static_cast<Server*>(udp->data)->flows_;
        auto answer = flows.arrived(address_of(from), buffer->base, std::size_t(length), now_ns());
        if (answer.empty()) return;
        auto bytes = uv_buf_init(const_cast<char*>(answer.data()), unsigned(answer.size()));
        uv_udp_try_send(udp, &bytes, 1, from); // the client repeats a question without an answer
    }

    datagram::Payload payload_;
    datagram::Flows<Address> flows_;
    std::vector<char> data_;
    uv_loop_t loop_;
    uv_udp_t udp_;
};

// One flow of a client: HELLO until it is answered, payload, END until it is answered.
class Flow {
public:
    Flow(const Spec& spec, const Window& window)
        : spec_(spec), window_(window), batch_(is_batch(spec)), sender_(spec), data_(slot) {
        if (batch_) requests_.resize(queued);
        for (auto& request : requests_) request.flow = this;
    }
    Flow(const Flow&) = delete;

    Result result;
    bool failed = false;

    void open(uv_loop_t* loop, std::size_t turn) {
        auto to = sockaddr_of(spec_.connect.ip, spec_.connect.port);
        check(uv_udp_init(loop, &udp_), "uv_udp_init");
        check(uv_timer_init(loop, &timer_), "uv_timer_init");
        check(uv_idle_init(loop, &idle_), "uv_idle_init");
        udp_.data = timer_.data = idle_.data = this;
        int status = 0;
        if (!spec_.sources.empty()) {
            auto from = sockaddr_of(spec_.sources[turn % spec_.sources.size()], 0);
            status = uv_udp_bind(&udp_, as_sockaddr(from), 0);
        }
        if (status == 0) status = uv_udp_connect(&udp_, as_sockaddr(to));
        if (status < 0) fail(connect_kind(-status));
        else ask(Kind::connect_timeout, Kind::connect_refused);
    }
    void begin() {
        if (failed) return close();
        begun_ = true;
        if (!batch_) uv_idle_start(&idle_, [](uv_idle_t* idle) { self(idle)->send_some(); });
        else
            for (auto& request : requests_) queue(request);
    }
    // The loop ends when all of its handles are closed.
    void close() {
        for (void* each : {(void*)&udp_, (void*)&timer_, (void*)&idle_})
            if (auto handle = static_cast<uv_handle_t*>(each); !uv_is_closing(handle)) uv_close(handle, nullptr);
    }

private:
    // A datagram in libuv's queue, with bytes of its own.
    struct Request {
        uv_udp_send_t send;
        std::string bytes;
        Flow* flow;
    };

    bool over() { return failed || !sender_.has_more() || window_.is_over(now_ns()); }

    void send_some() {
        for (int i = 0; i < burst; ++i) {
            if (over()) {
                uv_idle_stop(&idle_);
                return finish();
            }
            auto& bytes = sender_.next();
            auto buffer = uv_buf_init(const_cast<char*>(bytes.data()), unsigned(bytes.size()));
            int status = uv_udp_try_send(&udp_, &buffer, 1, nullptr);
            if (status == UV_EAGAIN) return;
            if (status < 0) fail(status == UV_ECONNREFUSED ? Kind::reset : Kind::failed);
            else ++sender_.sent;
        }
    }

    void queue(Request& request) {
        if (over()) {
            if (in_flight_ == 0) finish();
            return;
        }
        request.bytes = sender_.next();
        request.send.data = &request;
        auto buffer = uv_buf_init(&request.bytes[0], unsigned(request.bytes.size()));
        ++sender_.sent, ++in_flight_;
        int status = uv_udp_send(&request.send, &udp_, &buffer, 1, nullptr, [](uv_udp_send_t* send, int status) {
            auto& request = *static_cast<Request*>(send->data);
            request.flow->sent(request, status);
        });
        if (status < 0) sent(request, status);
    }
    void sent(Request& request, int status) {
        --in_flight_;
        if (status < 0) --sender_.sent, fail(status == UV_ECONNREFUSED ? Kind::reset : Kind::failed);
        queue(request);
    }

    void finish() { ask(Kind::timeout, Kind::reset); }

    // Sends the question until it is answered.
    void ask(Kind late, Kind refused) {
        deadline_ = now_ns() + spec_.timeout_ns, late_ = late, refused_ = refused;
        uv_udp_recv_start(&udp_, [](uv_handle_t* handle, std::size_t, uv_buf_t* buffer) {
            auto& data = self(handle)->data_;
            *buffer = uv_buf_init(data.data(), unsigned(data.size()));
        }, [](uv_udp_t* udp, ssize_t length, const uv_buf_t* buffer, const sockaddr* from, unsigned) {
            auto flow = self(udp);
            if (length < 0) flow->end(flow->refused_);
            else if (from && flow->sender_.answers(buffer->base, std::size_t(length)))
                flow->end(flow->sender_.is_malformed ? std::optional(Kind::malformed) : std::nullopt);
        });
        uv_timer_start(&timer_, [](uv_timer_t* timer) { self(timer)->question(); }, 0, datagram::repeat_ms);
    }
    void question() {
        if (now_ns() >= deadline_) return end(late_);
        auto& bytes = sender_.question();
        auto buffer = uv_buf_init(const_cast<char*>(bytes.data()), unsigned(bytes.size()));
        int status = uv_udp_try_send(&udp_, &buffer, 1, nullptr);
        if (status < 0 && status != UV_EAGAIN) end(refused_);
    }
    void end(std::optional<Kind> kind) {
        uv_timer_stop(&timer_);
        uv_udp_recv_stop(&udp_);
        if (kind) fail(*kind);
        if (!begun_) return;
        result.add_flow(sender_.sent, sender_.sent_ns, sender_.report, spec_.size);
        close();
    }
    // A flow fails once.
    void fail(Kind kind) {
        if (!failed) result.fail(kind, now_ns());
        failed = true;
    }
    template <class Handle> static Flow* self(Handle* handle) { return static_cast<Flow*>(handle->data); }

    const Spec& spec_;
    const Window& window_;
    const bool batch_;
    datagram::Sender sender_;
    std::vector<Request> requests_;
    std::vector<char> data_;
    uv_udp_t udp_;
    uv_timer_t timer_;
    uv_idle_t idle_;
    std::uint64_t deadline_ = 0;
    Kind late_ = Kind::timeout, refused_ = Kind::reset;
    int in_flight_ = 0;
    bool begun_ = false;
};

} // namespace

void serve_datagrams(const Spec& spec) { Server{spec}; }

// A loop for each thread; the flows are spread over the loops.
void drive_datagrams(const Spec& spec) {
    need_end(spec);
    Window window(spec);
    auto loops = make_loops(std::min(spec.threads, spec.connections));
    std::vector<std::unique_ptr<Flow>> flows;
    for (std::uint32_t i = 0; i < spec.connections; ++i) {
        flows.push_back(std::make_unique<Flow>(spec, window));
        flows.back()->open(&loops[i % loops.size()], i);
    }
    for (auto& loop : loops) uv_run(&loop, UV_RUN_DEFAULT);
    window.open();
    for (auto& flow : flows) flow->begin();
    run_loops(loops);
    window.done(flows);
}
