#pragma once

#include "linerate.hpp"

// `rr` and `stream` over WebSocket, plain or on TLS.
void serve(const linerate::Spec&);
void drive(const linerate::Spec&);
