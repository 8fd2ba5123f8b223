// Workloads without a network: started coroutines, and timers.
#include "linerate/event_loop.hpp"
#include "net.hpp"
#include "linerate/posting.hpp"

#include <memory>

using namespace linerate;

namespace {

template <class Counter> capy::task<> increment(Counter& counter) {
    ++counter;
    co_return;
}

class Loop {
public:
    explicit Loop(std::uint32_t threads) : context_(threads) {}

    template <class Counter> void post(Counter& counter) { capy::run_async(context_.get_executor())(increment(counter)); }
    void run() { context_.run(); }
    void restart() { context_.restart(); }
    void hold() { context_.get_executor().on_work_started(); }
    void release() { context_.get_executor().on_work_finished(); }

private:
    corosio::io_context context_;
};

struct Slot {
    Slot(corosio::io_context& context, const Window& window) : near(context), far(context), result(window) {}
    corosio::timer near, far;
    Result result;
};

capy::task<> cancelled(Slot& slot) {
    auto [error] = co_await slot.far.wait();
    if (error == capy::cond::canceled) slot.result.succeed(now_ns(), 0);
    else slot.result.fail(Kind::failed, now_ns());
}

capy::task<> fire_and_cancel(corosio::io_context& context, Window& window, Slot& slot) {
    for (bool fires = true; window.begin(now_ns()); fires = !fires) {
        if (fires) {
            slot.near.expires_after(std::chrono::milliseconds(1));
            co_await slot.near.wait();
            auto late = corosio::timer::clock_type::now() - slot.near.expiry();
            if (slot.result.succeed(now_ns(), 0))
                slot.result.latency.record(std::uint64_t(std::chrono::nanoseconds(late).count()));
        } else {
            // On the context's own thread a coroutine starts at once, so it waits before the next line cancels it. It ends before
            // the timer is set again, since the other timer fires in between.
            slot.far.expires_after(std::chrono::hours(1));
            capy::run_async(context.get_executor())(cancelled(slot));
            slot.far.cancel();
        }
    }
}

} // namespace

void dispatch(const Spec& spec) { run_shape<Loop>(spec); }

void timers(const Spec& spec) {
    need_limit(spec);
    need_one_thread(spec);
    Window window(spec);
    corosio::io_context context(1);
    std::vector<std::unique_ptr<Slot>> slots;
    for (std::uint32_t i = 0; i < spec.connections; ++i) slots.push_back(std::make_unique<Slot>(context, window));
    window.open();
    for (auto& slot : slots) capy::run_async(context.get_executor())(fire_and_cancel(context, window, *slot));
    context.run();
    window.done(slots);
}
