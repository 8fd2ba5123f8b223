// The five shapes of `dispatch`, for event loops with a queue of handlers. A handler is a callback or a coroutine. A Loop is
// constructed with the number of threads, and has:
//   post(counter)   queues one handler that adds one to the counter
//   run()           runs handlers on the calling thread until the queue is empty
//   restart()       prepares a loop for the next run()
//   hold(), release()   between them run() waits for handlers when the queue is empty
#pragma once

#include "result.hpp"

#include <algorithm>
#include <thread>

namespace linerate {

// Runs `work` on `threads` threads, the calling one included.
template <class Work> void run_on(std::uint32_t threads, Work work) {
    std::vector<std::thread> others;
    for (std::uint32_t i = 1; i < threads; ++i) others.emplace_back([&work, i] { work(i); });
    work(0);
    for (auto& each : others) each.join();
}

namespace detail {

// `posted` is called between posting and running, where that is one after the other on one thread.
template <class Loop, class Counter, class Posted>
void run_shape_once(const Spec& spec, Loop& loop, std::uint64_t operations, Counter& counter, Posted posted) {
    auto shape = spec.option("shape");
    auto post_many = [&](std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) loop.post(counter);
    };
    loop.restart();
    if (shape == "single" || shape == "threads" || shape == "run") {
        post_many(operations);
        posted();
        run_on(shape == "single" ? 1 : spec.threads, [&](std::uint32_t) { loop.run(); });
    } else if (shape == "interleaved") {
        for (std::uint64_t left = operations; left > 0; left -= std::min<std::uint64_t>(left, 100)) {
            post_many(std::min<std::uint64_t>(left, 100));
            loop.run();
            loop.restart();
        }
    } else {
        // A loop without work stops, even while another thread is about to post: hold() until all have posted.
        loop.hold();
        std::atomic<std::uint32_t> posting{spec.threads};
        run_on(spec.threads, [&](std::uint32_t i) {
            post_many(operations / spec.threads + (i < operations % spec.threads));
            if (posting.fetch_sub(1) == 1) loop.release();
            loop.run();
        });
    }
}

} // namespace detail

template <class Loop> void run_shape(const Spec& spec) {
    bool shared = need_shape(spec);
    Loop loop(shared ? spec.threads : 1);
    auto measure = [&](auto& counter) {
        detail::run_shape_once(spec, loop, spec.operations / 10, counter, [] {});
        counter = 0;
        Window window(spec);
        window.open();
        bool is_run = spec.option("shape") == "run"; // one pass, whose window opens when all is posted
        std::uint64_t posted = 0;
        do {
            detail::run_shape_once(spec, loop, spec.operations, counter, [&] { if (is_run) window.open(); });
            posted += spec.operations;
        } while (!is_run && counter == posted && spec.duration_ns != UINT64_MAX && !window.is_over(now_ns()));
        window.done(counter, posted);
    };
    // One thread alone needs no atomic counter.
    if (shared) {
        std::atomic<std::uint64_t> counter{0};
        measure(counter);
    } else {
        std::uint64_t counter = 0;
        measure(counter);
    }
}

} // namespace linerate
