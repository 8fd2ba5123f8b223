#pragma once

#include <string>

// The version of the Asio headers, in their own numbers.
std::string asio_version();
