#pragma once

#include "linerate.hpp"

// `rr` and counted `stream`; *_sessions.cpp have them asynchronous, *_threads.cpp blocking. A file for each layer and style:
// one with all four took 100 s and 2.5 GB to compile.
std::vector<linerate::Ability> websocket_conversations();
std::vector<linerate::Ability> wss_conversations();
