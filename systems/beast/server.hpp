#pragma once

#include "linerate.hpp"

void serve_http(const linerate::Spec&);
