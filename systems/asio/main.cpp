// The programs without TLS. CMakeLists.txt sets LINERATE_VARIANT, the sources, and which Asio.
#define LINERATE_IMPLEMENTATION
#include "linerate/event_loop.hpp"
#include "version.hpp"

int main(int argc, char** argv) {
    using namespace linerate;
    auto abilities = event_loop() + Abilities{{"client", "none", "dispatch", dispatch}};
#ifdef LINERATE_UDP
    abilities = abilities + datagram_stream();
#endif
    return start(argc, argv, {LINERATE_VARIANT, asio_version(), abilities});
}
