#pragma once

#include "linerate.hpp"

// `rr` and counted `stream` over TCP and TLS: threads.cpp has them blocking, sessions.cpp asynchronous.
std::vector<linerate::Ability> conversations();
