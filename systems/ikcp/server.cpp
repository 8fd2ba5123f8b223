// The server: one socket, a KCP conversation for each (address, conv).
#include "machine.hpp"

using namespace linerate;

namespace {

struct Session {
    Session(IUINT32 conv, int fd, const sockaddr_storage& from, const kcp::Setting& setting, const Content& content,
            std::size_t longest)
        : machine(conv, fd, from, setting), reader(content, longest) {}
    Machine machine;
    kcp::Reader reader;
    bool answered = false, fed = false;

    // A session whose answer is acknowledged is kept only for late segments.
    bool is_over() const { return answered && machine.waiting() == 0; }
};

class Server {
public:
    explicit Server(const Spec& spec)
        : setting_(spec, finest_interval_us), content_(spec.size), size_(spec.size),
          fd_(bound_socket(spec.listen.ip, spec.listen.port)), data_(65'536) {
        sockaddr_storage bound{};
        socklen_t length = sizeof bound;
        getsockname(fd_, reinterpret_cast<sockaddr*>(&bound), &length);
        // The port is at the same place in sockaddr_in6.
        emit_ready(spec.listen.ip, ntohs(reinterpret_cast<sockaddr_in&>(bound).sin_port));
        for (;;) turn();
    }

private:
    using Key = std::pair<std::array<char, sizeof(sockaddr_in6)>, IUINT32>;

    void turn() {
        wait();
        bool fed = false;
        while (receive()) fed = true;
        auto now = now_ms();
        for (auto& [key, session] : sessions_) {
            if (fed && session->fed) read(*session);
            bool due = !session->is_over() && session->machine.due_in(now) <= 0;
            if (session->fed || due) session->machine.flush(now);
            session->fed = false;
        }
    }
    void wait() {
        int timeout = -1;
        auto now = now_ms();
        for (auto& [key, session] : sessions_)
            if (!session->is_over()) {
                int due = std::max(0, session->machine.due_in(now));
                timeout = timeout < 0 ? due : std::min(timeout, due);
            }
        pollfd entry{fd_, POLLIN, 0};
        poll(&entry, 1, timeout);
    }
    bool receive() {
        sockaddr_storage from{};
        socklen_t from_length = sizeof from;
        auto address = reinterpret_cast<sockaddr*>(&from);
        auto length = recvfrom(fd_, data_.data(), data_.size(), MSG_DONTWAIT, address, &from_length);
        if (length < 0) return false;
        if (std::size_t(length) < 24) return true; // less than KCP's header
        Key key{{}, ikcp_getconv(data_.data())};
        std::memcpy(key.first.data(), &from, length_of(from));
        auto& session = sessions_[key];
        if (!session) session = std::make_unique<Session>(key.second, fd_, from, setting_, content_, size_);
        session->fed |= session->machine.input(data_.data(), std::size_t(length));
        return true;
    }
    void read(Session& session) {
        for (int length; (length = session.machine.receive(data_.data(), data_.size())) > 0;)
            session.reader.take(data_.data(), std::size_t(length));
        if (!session.reader.ended || session.answered) return;
        session.answered = true;
        auto number = to_wire(session.reader.good);
        session.machine.send({number.data(), number.size()});
    }

    kcp::Setting setting_;
    Content content_;
    std::size_t size_;
    int fd_;
    std::vector<char> data_;
    std::map<Key, std::unique_ptr<Session>> sessions_;
};

} // namespace

void serve_stream(const Spec& spec) { Server{spec}; }
