#include "endpoints.hpp"
#include "secure.hpp"
#include "threads.hpp"

using Transport = Wss<tcp::socket>;

void serve_wss(const linerate::Spec& spec) { serve_threads<Transport>(spec); }
void drive_wss(const linerate::Spec& spec) { drive_threads<Transport>(spec); }
