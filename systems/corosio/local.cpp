// What an io_context does without a network: run coroutines that were started on it, and fire timers.
#include "abilities.hpp"
#include "net.hpp"

#include <memory>

using namespace linerate;

namespace {

template <class Counter> capy::task<> increment(Counter& counter) {
    ++counter;
    co_return;
}

template <class Counter>
void run_shape(const Spec& spec, corosio::io_context& context, std::uint64_t operations, Counter& counter) {
    auto shape = spec.option("shape");
    auto executor = context.get_executor();
    auto post_many = [&](std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) capy::run_async(executor)(increment(counter));
    };
    context.restart();
    if (shape == "single" || shape == "threads") {
        post_many(operations);
        run(context, shape == "single" ? 1 : spec.threads);
    } else if (shape == "interleaved") {
        for (std::uint64_t left = operations; left > 0; left -= std::min<std::uint64_t>(left, 100)) {
            post_many(std::min<std::uint64_t>(left, 100));
            context.run();
            context.restart();
        }
    } else {
        // A context without work stops, also while another thread is about to post: this holds it until all have.
        executor.on_work_started();
        std::atomic<std::uint32_t> posting{spec.threads};
        std::vector<std::thread> threads;
        for (std::uint32_t i = 0; i < spec.threads; ++i)
            threads.emplace_back([&, i] {
                post_many(operations / spec.threads + (i < operations % spec.threads));
                if (posting.fetch_sub(1) == 1) executor.on_work_finished();
                context.run();
            });
        for (auto& each : threads) each.join();
    }
}

template <class Counter> void measure(const Spec& spec, std::uint32_t threads) {
    corosio::io_context context(threads);
    Counter counter{0};
    run_shape(spec, context, spec.operations / 10, counter);
    counter = 0;
    Window window(spec);
    window.open();
    run_shape(spec, context, spec.operations, counter);
    window.done(counter, spec.operations);
}

struct Slot {
    explicit Slot(corosio::io_context& context) : near(context), far(context) {}
    corosio::timer near, far;
    Account account;
};

capy::task<> cancelled(Slot& slot) {
    auto [error] = co_await slot.far.wait();
    if (error == capy::cond::canceled) slot.account.succeed(now_ns(), 0);
    else slot.account.fail(Kind::failed, now_ns());
}

capy::task<> fire_and_cancel(corosio::io_context& context, Window& window, Slot& slot) {
    for (bool fires = true; window.begin(now_ns()); fires = !fires) {
        if (fires) {
            slot.near.expires_after(std::chrono::milliseconds(1));
            co_await slot.near.wait();
            auto late = corosio::timer::clock_type::now() - slot.near.expiry();
            slot.account.latency.record(std::uint64_t(std::chrono::nanoseconds(late).count()));
            slot.account.succeed(now_ns(), 0);
        } else {
            // On the context's own thread a coroutine starts at once: it waits before the next line cancels it. It has ended
            // before the timer is set again, since one of a millisecond fires in between.
            slot.far.expires_after(std::chrono::hours(1));
            capy::run_async(context.get_executor())(cancelled(slot));
            slot.far.cancel();
        }
    }
}

} // namespace

void dispatch(const Spec& spec) {
    // Several threads share an atomic; one alone does not pay for it.
    if (need_shape(spec)) measure<std::atomic<std::uint64_t>>(spec, spec.threads);
    else measure<std::uint64_t>(spec, 1);
}

void timers(const Spec& spec) {
    need(spec.operations != UINT64_MAX || spec.duration_ns != UINT64_MAX, "\"operations\" or \"duration_ns\" is missing");
    need_one_thread(spec);
    Window window(spec);
    corosio::io_context context(1);
    std::vector<std::unique_ptr<Slot>> slots;
    for (std::uint32_t i = 0; i < spec.connections; ++i) slots.push_back(std::make_unique<Slot>(context));
    window.open();
    for (auto& slot : slots) capy::run_async(context.get_executor())(fire_and_cancel(context, window, *slot));
    context.run();
    window.done(slots);
}
