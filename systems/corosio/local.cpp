// Work without a network: started coroutines.
#include "linerate/event_loop.hpp"
#include "net.hpp"
#include "linerate/posting.hpp"

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

} // namespace

void dispatch(const Spec& spec) { run_shape<Loop>(spec); }
