// The programs that are an event loop and no more; CMakeLists.txt sets LINERATE_VARIANT, the sources, and which Asio.
#define LINERATE_IMPLEMENTATION
#include "linerate/event_loop.hpp"
#include "version.hpp"

int main(int argc, char** argv) {
    std::vector<linerate::Ability> beside = {{"client", "none", "dispatch", dispatch}};
#ifdef LINERATE_UDP
    beside.push_back({"server", "udp", "stream", serve_datagrams});
    beside.push_back({"client", "udp", "stream", drive_datagrams});
#endif
    return linerate::start(argc, argv, {LINERATE_VARIANT, asio_version(), linerate::event_loop(beside)});
}
