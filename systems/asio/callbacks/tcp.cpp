// The workloads on TCP: sessions, and for `crr` a slot that makes a session for each operation.
#include "linerate/event_loop.hpp"
#include "sessions.hpp"

using namespace linerate;

namespace {

class Slot {
public:
    Slot(CrrClient& client, Setting& setting, std::atomic<std::size_t>& turn, Executor executor)
        : client_(client), setting_(setting), turn_(turn), executor_(std::move(executor)) {}

    // By way of the queue: an operation that fails at once must not recurse.
    void post() {
        net::post(executor_, [this] { next(); });
    }

private:
    void next() {
        if (!client_.begin()) return;
        transport_.reset();
        TcpSocket socket(executor_);
        auto to = endpoint(setting_.spec.connect);
        try {
            open(socket, setting_.spec, to, turn_++);
        } catch (const system_error& e) {
            return refused(e.code());
        }
        client_.watched.watch(socket.native_handle());
        transport_ = std::make_unique<PlainTransport>(std::move(socket), setting_);
        transport_->async_connect(to, [this](error_code error) {
            if (error) return refused(error);
            client_.connected();
            auto ended = [this](error_code error) { end(error); };
            std::make_shared<Session<PlainTransport>>(*transport_, client_, ended)->step();
        });
    }
    void refused(error_code error) {
        client_.fail_connect(connect_kind(error.value()));
        client_.watched.release();
        post();
    }
    void end(error_code error) {
        Connections<PlainTransport>::end(client_, error);
        if (error) transport_->drop();
        client_.closed();
        post();
    }

    CrrClient& client_;
    Setting& setting_;
    std::atomic<std::size_t>& turn_;
    Executor executor_;
    std::unique_ptr<PlainTransport> transport_;
};

void drive_crr(const Spec& spec) {
    need_message(spec);
    Setting setting(spec);
    Clients clients(spec);
    auto dog = clients.watch();
    std::atomic<std::size_t> turn{0};
    Loops loops(spec.threads);
    std::vector<std::unique_ptr<Slot>> slots;
    for (auto& each : clients.all)
        slots.push_back(std::make_unique<Slot>(static_cast<CrrClient&>(*each), setting, turn, loops.next()));
    clients.window.open();
    for (auto& slot : slots) slot->post();
    loops.run();
    clients.window.done(clients.all);
}

} // namespace

void serve_tcp(const Spec& spec) { serve_sessions<PlainTransport>(spec); }
void drive_tcp(const Spec& spec) { spec.workload == "crr" ? drive_crr(spec) : drive_sessions<PlainTransport>(spec); }

void loop_tcp(const Spec& spec) {
    need_protocol(spec, true);
    OneLoop both(spec);
    Setting setting(both.server);
    drive_sessions<PlainTransport>(both.client, both.loops, [&] {
        std::make_shared<Served<PlainTransport>>(both.accept(), setting)->start();
    });
}
