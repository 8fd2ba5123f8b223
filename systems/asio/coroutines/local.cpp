// Workloads without a network: spawned coroutines, and timers.
#include "linerate/event_loop.hpp"
#include "coroutine.hpp"
#include "loop.hpp"

#include <chrono>

using namespace linerate;

namespace {

template <class Counter> awaitable<void> increment(Counter& counter) {
    ++counter;
    co_return;
}

struct Loop : ContextLoop {
    using ContextLoop::ContextLoop;
    template <class Counter> void post(Counter& counter) { co_spawn(context_, increment(counter), detached); }
};

struct Slot {
    Slot(net::any_io_executor executor, const Window& window) : timer(std::move(executor)), result(window) {}
    Timer timer;
    Result result;
};

awaitable<void> fire_and_cancel(Window& window, Slot& slot) {
    for (bool fires = true; window.begin(now_ns()); fires = !fires) {
        if (fires) {
            slot.timer.expires_after(std::chrono::milliseconds(1));
            co_await slot.timer.async_wait();
            auto late = Timer::clock_type::now() - slot.timer.expiry();
            if (slot.result.succeed(now_ns(), 0))
                slot.result.latency.record(std::uint64_t(std::chrono::nanoseconds(late).count()));
        } else {
            slot.timer.expires_after(std::chrono::hours(1));
            // The waiting coroutine cannot cancel its own timer: a handler behind it in the queue does.
            net::post(slot.timer.get_executor(), [&slot] { slot.timer.cancel(); });
            auto [error] = co_await slot.timer.async_wait();
            if (error == net::error::operation_aborted) slot.result.succeed(now_ns(), 0);
            else slot.result.fail(Kind::failed, now_ns());
        }
    }
}

} // namespace

void dispatch(const Spec& spec) { run_shape<Loop>(spec); }

void timers(const Spec& spec) {
    need_limit(spec);
    Window window(spec);
    Loops loops(spec.threads);
    std::vector<std::unique_ptr<Slot>> slots;
    for (std::uint32_t i = 0; i < spec.connections; ++i)
        slots.push_back(std::make_unique<Slot>(loops.next(), window));
    window.open();
    for (auto& slot : slots) co_spawn(slot->timer.get_executor(), fire_and_cancel(window, *slot), detached);
    loops.run();
    window.done(slots);
}
