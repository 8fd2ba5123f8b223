#define LINERATE_IMPLEMENTATION
#include "abilities.hpp"

int main(int argc, char** argv) {
    return linerate::start(argc, argv, {"corosio", LINERATE_COROSIO_VERSION, {
        {"server", "http", "http", serve_http},
        {"server", "tcp", "rr", serve_echo},
        {"server", "tcp", "churn", serve_echo},
        {"server", "tcp", "fanout", serve_echo},
        {"server", "tcp", "stream", serve_stream},
        {"client", "tcp", "rr", drive_rr},
        {"client", "tcp", "churn", drive_churn},
        {"client", "tcp", "fanout", drive_fanout},
        {"client", "tcp", "stream", drive_stream},
        {"client", "none", "dispatch", dispatch},
        {"client", "none", "timers", timers},
    }});
}
