// Workloads without a network: posted handlers, and timers.
#include "linerate/event_loop.hpp"
#include "loop.hpp"

#include <chrono>

using namespace linerate;

namespace {

struct Loop : ContextLoop {
    using ContextLoop::ContextLoop;
    template <class Counter> void post(Counter& counter) { net::post(context_, [&counter] { ++counter; }); }
};

class Timers {
public:
    explicit Timers(const Spec& spec) : window_(spec), loops_(spec.threads) {
        for (std::uint32_t i = 0; i < spec.connections; ++i)
            slots_.push_back(std::make_unique<Slot>(loops_.next(), window_));
        window_.open();
        for (auto& slot : slots_) net::post(slot->timer.get_executor(), [this, &slot = *slot] { fire(slot); });
        loops_.run();
        window_.done(slots_);
    }

private:
    struct Slot {
        Slot(Executor executor, const Window& window) : timer(std::move(executor)), result(window) {}
        SteadyTimer timer;
        Result result;
    };

    void fire(Slot& slot) {
        if (!window_.begin(now_ns())) return;
        slot.timer.expires_after(std::chrono::milliseconds(1));
        slot.timer.async_wait([this, &slot](error_code) {
            auto late = net::steady_timer::clock_type::now() - slot.timer.expiry();
            if (slot.result.succeed(now_ns(), 0))
                slot.result.latency.record(std::uint64_t(std::chrono::nanoseconds(late).count()));
            cancel(slot);
        });
    }
    void cancel(Slot& slot) {
        if (!window_.begin(now_ns())) return;
        slot.timer.expires_after(std::chrono::hours(1));
        slot.timer.async_wait([this, &slot](error_code error) {
            auto now = now_ns();
            if (error == net::error::operation_aborted) slot.result.succeed(now, 0);
            else slot.result.fail(Kind::failed, now);
            fire(slot);
        });
        slot.timer.cancel();
    }

    Window window_;
    Loops loops_;
    std::vector<std::unique_ptr<Slot>> slots_;
};

} // namespace

void dispatch(const Spec& spec) { run_shape<Loop>(spec); }

void timers(const Spec& spec) {
    need_limit(spec);
    Timers{spec};
}
