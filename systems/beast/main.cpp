// The program of both variants: beast-async has the HTTP server beside, since only its style has one.
#define LINERATE_IMPLEMENTATION
#include "conversations.hpp"
#include "version.hpp"
#ifdef LINERATE_HTTP
#include "server.hpp"
#endif

int main(int argc, char** argv) {
    auto abilities = websocket_conversations();
    for (const auto& each : wss_conversations()) abilities.push_back(each);
#ifdef LINERATE_HTTP
    abilities.push_back({"server", "http", "http", serve_http});
#endif
    return linerate::start(argc, argv, {LINERATE_VARIANT, beast_version(), abilities});
}
