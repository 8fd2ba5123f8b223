#pragma once

#include <string>

// Of the Asio that the program was compiled with, in its own numbers.
std::string asio_version();
