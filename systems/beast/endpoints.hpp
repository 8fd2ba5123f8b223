#pragma once

#include "linerate.hpp"

// `rr` and `stream` over WebSocket, plain or on TLS. Asynchronous in *_sessions.cpp, blocking in *_threads.cpp. A file for
// each layer and style, since each takes most of a minute to compile.
void serve_websocket(const linerate::Spec&);
void drive_websocket(const linerate::Spec&);
void serve_wss(const linerate::Spec&);
void drive_wss(const linerate::Spec&);
