// The SDK's part that is compiled once for all programs of this folder.
#define LINERATE_IMPLEMENTATION
#include "linerate.hpp"
