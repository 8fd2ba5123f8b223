// The four shapes of `dispatch`; what a handler is, callback or coroutine, is the caller's.
#pragma once

#include "net.hpp"

#include <memory>

// Posts `operations` handlers in the given shape and runs them all; `post(context, counter)` posts one.
template <class Counter, class Post>
void run_shape_once(const linerate::Spec& spec, net::io_context& context, std::uint64_t operations, Counter& counter, Post post) {
    auto shape = spec.option("shape");
    auto post_many = [&](std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) post(context, counter);
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
        // A context without work stops, also while another thread is about to post: the guard holds it until all have.
        auto guard = std::make_unique<net::executor_work_guard<net::io_context::executor_type>>(context.get_executor());
        std::atomic<std::uint32_t> posting{spec.threads};
        std::vector<std::thread> threads;
        for (std::uint32_t i = 0; i < spec.threads; ++i)
            threads.emplace_back([&, i] {
                post_many(operations / spec.threads + (i < operations % spec.threads));
                if (posting.fetch_sub(1) == 1) guard.reset();
                context.run();
            });
        for (auto& each : threads) each.join();
    }
}

template <class Post> void run_shape(const linerate::Spec& spec, Post post) {
    bool shared = linerate::need_shape(spec);
    net::io_context context(int(shared ? spec.threads : 1));
    auto measure = [&](auto& counter) {
        run_shape_once(spec, context, spec.operations / 10, counter, post);
        counter = 0;
        linerate::Window window(spec);
        window.open();
        run_shape_once(spec, context, spec.operations, counter, post);
        window.done(counter, spec.operations);
    };
    // Several threads share an atomic; one alone does not pay for it.
    if (shared) {
        std::atomic<std::uint64_t> counter{0};
        measure(counter);
    } else {
        std::uint64_t counter = 0;
        measure(counter);
    }
}
