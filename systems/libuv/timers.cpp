// Timers. libuv's resolution is a millisecond, and a timer counts from the loop's cached time.
#include "linerate/event_loop.hpp"
#include "socket.hpp"

#include <memory>

using namespace linerate;

namespace {

constexpr std::uint64_t after_ms = 1, after_ns = 1'000'000, hour_ms = 3'600'000;

struct Slot {
    uv_timer_t timer;
    Window& window;
    Result result;
    std::uint64_t due = 0;

    Slot(uv_loop_t* loop, Window& window) : window(window), result(window) {
        check(uv_timer_init(loop, &timer), "uv_timer_init");
        timer.data = this;
    }

    void fire() {
        if (!window.begin(now_ns())) return;
        uv_update_time(timer.loop); // as the documentation advises after long callbacks
        due = now_ns() + after_ns;
        uv_timer_start(&timer, [](uv_timer_t* timer) { static_cast<Slot*>(timer->data)->fired(); }, after_ms, 0);
    }
    void fired() {
        auto now = now_ns();
        if (result.succeed(now, 0)) result.latency.record(now > due ? now - due : 0);
        cancel();
        fire();
    }
    void cancel() {
        if (!window.begin(now_ns())) return;
        uv_timer_start(&timer, [](uv_timer_t*) {}, hour_ms, 0);
        uv_timer_stop(&timer);
        result.succeed(now_ns(), 0);
    }
};

} // namespace

void timers(const Spec& spec) {
    need_limit(spec);
    Window window(spec);
    auto loops = make_loops(std::min(spec.threads, spec.connections));
    std::vector<std::unique_ptr<Slot>> slots;
    for (std::uint32_t i = 0; i < spec.connections; ++i)
        slots.push_back(std::make_unique<Slot>(&loops[i % loops.size()], window));
    window.open();
    for (auto& slot : slots) slot->fire();
    run_loops(loops);
    window.done(slots);
    for (auto& slot : slots) uv_close(reinterpret_cast<uv_handle_t*>(&slot->timer), nullptr);
    for (auto& loop : loops) {
        uv_run(&loop, UV_RUN_DEFAULT);
        uv_loop_close(&loop);
    }
}
