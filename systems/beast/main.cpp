// The program of both variants. The HTTP server exists in asynchronous style only.
#include "endpoints.hpp"
#include "linerate/protocol_spec.hpp"
#include "version.hpp"
#ifdef LINERATE_HTTP
#include "server.hpp"
#endif

int main(int argc, char** argv) {
    using namespace linerate;
    auto abilities = both_ends("websocket", {"rr", "stream"}, serve_websocket, drive_websocket) +
                     both_ends("wss", {"rr", "stream"}, serve_wss, drive_wss);
    const char* name = "beast-sync";
#ifdef LINERATE_HTTP
    name = "beast-async";
    abilities = abilities + Abilities{{"server", "http", "rr", serve_http}, {"server", "http", "crr", serve_http}};
#endif
    return start(argc, argv, {name, beast_version(), abilities, {"write-buffer"}});
}
