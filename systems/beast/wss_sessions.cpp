#include "endpoints.hpp"
#include "secure.hpp"
#include "sessions.hpp"
#include <boost/beast/core/tcp_stream.hpp>

using Transport = Wss<beast::tcp_stream>;

void serve_wss(const linerate::Spec& spec) { serve_sessions<Transport>(spec); }
void drive_wss(const linerate::Spec& spec) { drive_sessions<Transport>(spec); }
