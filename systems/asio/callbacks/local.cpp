// Work without a network: posted handlers.
#include "linerate/event_loop.hpp"
#include "loop.hpp"

using namespace linerate;

namespace {

struct Loop : ContextLoop {
    using ContextLoop::ContextLoop;
    template <class Counter> void post(Counter& counter) { net::post(context_, [&counter] { ++counter; }); }
};

} // namespace

void dispatch(const Spec& spec) { run_shape<Loop>(spec); }
