#pragma once

#include "linerate.hpp"

// `rr` and counted `stream`; a file for each layer, since each compiles for long.
void serve_websocket(const linerate::Spec&);
void drive_websocket(const linerate::Spec&);
void serve_wss(const linerate::Spec&);
void drive_wss(const linerate::Spec&);
