#include "tls.hpp"
#include "sessions.hpp"
#include "tls_transport.hpp"

void serve_tls(const linerate::Spec& spec) { serve_sessions<TlsTransport>(spec); }
void drive_tls(const linerate::Spec& spec) { drive_sessions<TlsTransport>(spec); }
