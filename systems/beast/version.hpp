#pragma once

#include <string>

// The version of Beast, and of Boost.
std::string beast_version();
