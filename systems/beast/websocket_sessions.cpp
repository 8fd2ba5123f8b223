#include "endpoints.hpp"
#include "plain.hpp"
#include "sessions.hpp"
#include <boost/beast/core/tcp_stream.hpp>

using Transport = Websocket<beast::tcp_stream>;

void serve_websocket(const linerate::Spec& spec) { serve_sessions<Transport>(spec); }
void drive_websocket(const linerate::Spec& spec) { drive_sessions<Transport>(spec); }
