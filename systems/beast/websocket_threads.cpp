#include "endpoints.hpp"
#include "plain.hpp"
#include "threads.hpp"

using Transport = Websocket<tcp::socket>;

void serve_websocket(const linerate::Spec& spec) { serve_threads<Transport>(spec); }
void drive_websocket(const linerate::Spec& spec) { drive_threads<Transport>(spec); }
