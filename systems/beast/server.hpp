#pragma once

#include "linerate.hpp"

void serve_http(const linerate::Spec&);

// Beast's own number, and Boost's.
std::string beast_version();
