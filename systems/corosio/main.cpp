#define LINERATE_IMPLEMENTATION
#include "linerate/event_loop.hpp"

int main(int argc, char** argv) {
    using namespace linerate;
    auto abilities = event_loop() + both_in_one_loop() + Abilities{{"client", "none", "dispatch", dispatch}};
    return start(argc, argv, {"corosio", LINERATE_COROSIO_VERSION, abilities});
}
