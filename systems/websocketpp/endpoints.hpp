#pragma once

#include "linerate.hpp"

// `rr` and `stream`. A file for each layer, since each takes long to compile.
void serve_websocket(const linerate::Spec&);
void drive_websocket(const linerate::Spec&);
void serve_wss(const linerate::Spec&);
void drive_wss(const linerate::Spec&);
