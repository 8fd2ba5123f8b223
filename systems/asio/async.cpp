// The program of asio-async: what an event loop does, and conversations also over TLS.
#define LINERATE_IMPLEMENTATION
#include "conversations.hpp"
#include "linerate/event_loop.hpp"
#include "version.hpp"

int main(int argc, char** argv) {
    auto beside = conversations();
    beside.push_back({"server", "udp", "stream", serve_datagrams});
    beside.push_back({"client", "udp", "stream", drive_datagrams});
    beside.push_back({"client", "none", "dispatch", dispatch});
    return linerate::start(argc, argv, {LINERATE_VARIANT, asio_version(), linerate::event_loop(beside)});
}
