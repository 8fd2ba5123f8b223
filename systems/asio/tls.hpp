#pragma once

#include "linerate.hpp"

// `rr` and `stream` over TLS.
void serve_tls(const linerate::Spec&);
void drive_tls(const linerate::Spec&);
