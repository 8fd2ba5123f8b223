// Work without a network: spawned coroutines.
#include "linerate/event_loop.hpp"
#include "coroutine.hpp"
#include "loop.hpp"

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

} // namespace

void dispatch(const Spec& spec) { run_shape<Loop>(spec); }
