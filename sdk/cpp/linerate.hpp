// What a C++ program needs to become a system of linerate (sdk/CONTRACT.md, contract 1). C++17 or later, Linux.
//
//   argv[1] -> parse -> Spec -> your event loop -> Account per connection -> done() -> JSON lines on stdout
//
// One source file defines LINERATE_IMPLEMENTATION before it includes this header, and needs nlohmann/json
// (Debian: nlohmann-json3-dev); no other file pays for compiling a JSON parser. Beside what is included here there are, for
// programs that want them: linerate/conversation.hpp (`rr` and counted `stream` on any transport), linerate/tls.hpp,
// linerate/event_loop.hpp and linerate/posting.hpp (what the suite `runtime` asks of an event loop).
#pragma once

#include "linerate/account.hpp"
#include "linerate/content.hpp"
#include "linerate/datagram.hpp"
#include "linerate/histogram.hpp"
#include "linerate/http.hpp"
#include "linerate/task.hpp"

#ifdef LINERATE_IMPLEMENTATION
#include "linerate/implementation.hpp"
#endif
