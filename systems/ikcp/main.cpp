// KCP's original C implementation: ikcp.c is the state machine, and the loop around it is linerate's (NOTES.md).
#define LINERATE_IMPLEMENTATION
#include "machine.hpp"

void serve_stream(const linerate::Spec&);
void drive_stream(const linerate::Spec&);

int main(int argc, char** argv) {
    return linerate::start(argc, argv, {"ikcp", IKCP_VERSION, {
        {"server", "kcp", "stream", serve_stream},
        {"client", "kcp", "stream", drive_stream},
    }});
}
