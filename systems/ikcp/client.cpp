// The client: a socket and a KCP conversation for each flow, served in turn by one thread.
#include "machine.hpp"

#include <random>

using namespace linerate;

namespace {

struct Flow {
    Flow(const Spec& spec, const kcp::Setting& setting, const Window& window, int fd, IUINT32 conv)
        : fd(fd), machine(conv, fd, sockaddr_storage{}, setting), writer(spec, window), progress(now_ns()) {}
    ~Flow() { close(fd); }

    int fd;
    Machine machine;
    kcp::Writer writer;
    Result result;
    std::string answer;
    std::uint64_t progress; // time when the peer last acknowledged or sent data
    std::uint64_t deadline = UINT64_MAX; // of the server's number, once the end is written
    bool answered = false, over = false;
};

class Client {
public:
    explicit Client(const Spec& spec) : spec_(spec), setting_(spec, finest_interval_us), window_(spec), data_(65'536) {
        std::random_device random;
        for (std::uint32_t i = 0; i < spec.connections; ++i) {
            IUINT32 conv = 0;
            while (conv == 0) conv = random();
            flows_.push_back(std::make_unique<Flow>(spec, setting_, window_, connected(i), conv));
        }
        window_.open();
        for (;;) {
            bool over = true;
            for (auto& flow : flows_)
                if (!flow->over) turn(*flow), over &= flow->over;
            if (over) break;
            wait();
        }
        window_.done(flows_);
    }

private:
    int connected(std::size_t turn) {
        auto to = sockaddr_of(spec_.connect.ip, spec_.connect.port);
        auto any = to.ss_family == AF_INET ? "0.0.0.0" : "::";
        int fd = bound_socket(spec_.sources.empty() ? any : spec_.sources[turn % spec_.sources.size()], 0);
        if (connect(fd, reinterpret_cast<sockaddr*>(&to), length_of(to)) != 0) fail("connect");
        return fd;
    }

    void turn(Flow& flow) {
        bool fed = false, topped = false;
        int waiting = flow.machine.waiting();
        ssize_t length;
        while ((length = recv(flow.fd, data_.data(), data_.size(), MSG_DONTWAIT)) > 0)
            fed |= flow.machine.input(data_.data(), std::size_t(length));
        if (length < 0 && errno == ECONNREFUSED) flow.machine.refused = true;
        auto now = now_ns();
        flow.answered |= fed;
        if (flow.machine.waiting() < waiting) flow.progress = now;
        for (int got; (got = flow.machine.receive(data_.data(), data_.size())) > 0;)
            flow.answer.append(data_.data(), std::size_t(got)), flow.progress = now;
        bool received = flow.writer.ended && flow.machine.waiting() == 0; // by the server, the end included
        // KCP's queue is kept one write longer than the window.
        while (!flow.writer.ended && flow.machine.waiting() < setting_.window)
            flow.machine.send(flow.writer.next()), topped = true;
        if (flow.writer.ended) flow.deadline = std::min(flow.deadline, now + spec_.timeout_ns);
        if (fed || topped || flow.machine.due_in(now_ms()) <= 0) flow.machine.flush(now_ms());
        if (!flow.answer.empty() && !received) {
            end(flow, Kind::malformed);
        } else if (flow.answer.size() >= 8) {
            std::array<char, 8> number;
            std::memcpy(number.data(), flow.answer.data(), number.size());
            if (from_wire(number) > flow.writer.written) return end(flow, Kind::malformed);
            flow.result.add_stream(flow.writer.written, from_wire(number), spec_.size, now_ns());
            flow.over = true;
        } else if (flow.machine.refused) {
            end(flow, flow.answered ? Kind::reset : Kind::connect_refused);
        } else if (now - flow.progress >= spec_.timeout_ns || now >= flow.deadline) {
            end(flow, flow.answered ? Kind::timeout : Kind::connect_timeout);
        }
    }
    void end(Flow& flow, Kind kind) {
        flow.result.fail(kind, now_ns());
        flow.over = true;
    }

    void wait() {
        std::vector<pollfd> entries;
        int timeout = 1'000;
        auto now = now_ms();
        for (auto& flow : flows_)
            if (!flow->over) {
                entries.push_back({flow->fd, POLLIN, 0});
                timeout = std::min(timeout, std::max(0, flow->machine.due_in(now)));
            }
        poll(entries.data(), entries.size(), timeout);
    }

    const Spec& spec_;
    kcp::Setting setting_;
    Window window_;
    std::vector<char> data_;
    std::vector<std::unique_ptr<Flow>> flows_;
};

} // namespace

void drive_stream(const Spec& spec) {
    need_end(spec);
    if (spec.threads > 1) throw Unsupported("several threads: ikcp.c runs in one loop");
    Client{spec};
}
