// A `stream` over UDP: an asynchronous send or receive for each datagram, as in the tutorial "Daytime.6".
#include "linerate/event_loop.hpp"
#include "net.hpp"

using namespace linerate;

namespace {

void need_single(const Spec& spec) {
    if (datagram::mode(spec) != "single") throw Unsupported("\"options.mode\" other than single");
}

class Server {
public:
    explicit Server(const Spec& spec)
        : payload_(spec), flows_(payload_), loops_(spec.threads), socket_(loops_.first(), endpoint<udp>(spec.listen)),
          data_(datagram::largest + 1) {
        emit_ready(spec.listen.ip, socket_.local_endpoint().port());
        receive();
        loops_.run();
    }

private:
    // The one socket never has more than one handler, so it needs no strand, even on several threads.
    void receive() {
        socket_.async_receive_from(net::buffer(data_), from_, [this](error_code error, std::size_t length) {
            if (error) return receive(); // an ICMP answer to an answer of this server
            auto answer = flows_.arrived(from_, data_.data(), length, now_ns());
            if (answer.empty()) return receive();
            socket_.async_send_to(net::buffer(answer), from_, [this](error_code, std::size_t) { receive(); });
        });
    }

    datagram::Payload payload_;
    datagram::Flows<udp::endpoint> flows_;
    Loops loops_;
    udp::socket socket_;
    udp::endpoint from_;
    std::vector<char> data_;
};

// One flow of a client: HELLO until it is answered, payload, END until it is answered.
class Flow {
public:
    Flow(const Spec& spec, net::any_io_executor executor)
        : socket_(executor), timer_(executor), spec_(spec), sender_(spec), data_(datagram::largest) {}

    Result result;
    bool failed = false;

    void open(std::size_t turn) {
        error_code error;
        auto to = endpoint<udp>(spec_.connect);
        socket_.open(to.protocol(), error);
        if (!error && !spec_.sources.empty())
            socket_.bind({net::ip::make_address(spec_.sources[turn % spec_.sources.size()]), 0}, error);
        if (!error) socket_.connect(to, error);
        if (error) fail(connect_kind(error.value()));
    }
    void greet() {
        if (!failed) ask(Kind::connect_timeout, Kind::connect_refused);
    }
    void begin(const Window& window) {
        if (failed) return;
        window_ = &window;
        send();
    }

private:
    void send() {
        if (!sender_.has_more() || window_->is_over(now_ns())) return finish();
        socket_.async_send(net::buffer(sender_.next()), [this](error_code error, std::size_t) {
            if (error) {
                fail(error == net::error::connection_refused ? Kind::reset : Kind::failed);
                return finish();
            }
            ++sender_.sent;
            send();
        });
    }
    void finish() { ask(Kind::timeout, Kind::reset); }

    // Sends the question until it is answered.
    void ask(Kind late, Kind refused) {
        deadline_ = now_ns() + spec_.timeout_ns, late_ = late, refused_ = refused, asking_ = true;
        question();
        listen();
    }
    void question() {
        error_code error;
        socket_.send(net::buffer(sender_.question()), 0, error);
        if (error) return end(refused_);
        timer_.expires_after(std::chrono::milliseconds(datagram::repeat_ms));
        timer_.async_wait([this](error_code error) {
            if (error || !asking_) return;
            if (now_ns() >= deadline_) return end(late_);
            question();
        });
    }
    void listen() {
        socket_.async_receive(net::buffer(data_), [this](error_code error, std::size_t length) {
            if (!asking_) return;
            if (error) return end(refused_);
            if (!sender_.answers(data_.data(), length)) return listen();
            if (sender_.is_malformed) return end(Kind::malformed);
            end({});
        });
    }
    void end(std::optional<Kind> kind) {
        asking_ = false;
        timer_.cancel();
        error_code ignored;
        if (kind) socket_.cancel(ignored), fail(*kind);
        if (window_) result.add_flow(sender_.sent, sender_.sent_ns, sender_.report, spec_.size);
    }
    // A flow fails once.
    void fail(Kind kind) {
        if (!failed) result.fail(kind, now_ns());
        failed = true;
    }

    udp::socket socket_;
    net::steady_timer timer_;
    const Spec& spec_;
    const Window* window_ = nullptr;
    datagram::Sender sender_;
    std::vector<char> data_;
    std::uint64_t deadline_ = 0;
    Kind late_ = Kind::timeout, refused_ = Kind::reset;
    bool asking_ = false;
};

} // namespace

void serve_datagrams(const Spec& spec) { need_single(spec), Server{spec}; }

void drive_datagrams(const Spec& spec) {
    need_single(spec);
    need_end(spec);
    Window window(spec);
    Loops loops(spec.threads);
    std::vector<std::unique_ptr<Flow>> flows;
    for (std::uint32_t i = 0; i < spec.connections; ++i) {
        flows.push_back(std::make_unique<Flow>(spec, loops.next()));
        flows.back()->open(i);
        flows.back()->greet();
    }
    loops.first().run();
    loops.first().restart();
    window.open();
    for (auto& flow : flows) flow->begin(window);
    loops.run();
    window.done(flows);
}
