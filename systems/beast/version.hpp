#pragma once

#include <string>

// Beast's own number, and Boost's.
std::string beast_version();
