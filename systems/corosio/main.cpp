#define LINERATE_IMPLEMENTATION
#include "linerate/event_loop.hpp"

int main(int argc, char** argv) {
    return linerate::start(argc, argv, {"corosio", LINERATE_COROSIO_VERSION, linerate::event_loop({{"client", "none", "dispatch", dispatch}})});
}
