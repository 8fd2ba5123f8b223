// Protocols in blocking style: a thread for each connection, as in Asio's example blocking_tcp_echo_server.
#include "linerate/event_loop.hpp"
#include "threads.hpp"
#include "tls.hpp"
#include "tls_transport.hpp"

void serve_tcp(const linerate::Spec& spec) { serve_threads<PlainTransport>(spec); }
void drive_tcp(const linerate::Spec& spec) { drive_threads<PlainTransport>(spec); }
void serve_tls(const linerate::Spec& spec) { serve_threads<TlsTransport>(spec); }
void drive_tls(const linerate::Spec& spec) { drive_threads<TlsTransport>(spec); }
