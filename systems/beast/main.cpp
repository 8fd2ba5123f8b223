#define LINERATE_IMPLEMENTATION
#include "server.hpp"

int main(int argc, char** argv) {
    return linerate::start(argc, argv, {"beast-async", beast_version(), {{"server", "http", "http", serve_http}}});
}
