// Library for C++ programs as systems of linerate (sdk/CONTRACT.md, contract 3). C++17 or later, Linux.
//
//   argv[1] -> parse -> Spec -> your event loop -> Result per connection -> done() -> JSON lines on stdout
//
// One source file defines LINERATE_IMPLEMENTATION before it includes this header, and needs nlohmann/json
// (Debian: nlohmann-json3-dev). No other file compiles the JSON parser. Optional headers:
//   linerate/protocol_spec.hpp    rr, crr, fanout and stream as state machines, for any transport
//   linerate/tls.hpp         TLS settings for libraries that use OpenSSL
//   linerate/event_loop.hpp  the functions that the suite `runtime` measures
//   linerate/posting.hpp     the workload `dispatch`
#pragma once

#include "linerate/content.hpp"
#include "linerate/datagram.hpp"
#include "linerate/histogram.hpp"
#include "linerate/http.hpp"
#include "linerate/result.hpp"
#include "linerate/spec.hpp"

#ifdef LINERATE_IMPLEMENTATION
#include "linerate/implementation.hpp"
#endif
