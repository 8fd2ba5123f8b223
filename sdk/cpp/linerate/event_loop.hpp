// What an event loop does in the suite `runtime`: each system defines these functions, and its main() names them.
#pragma once

#include "../linerate.hpp"

void serve_http(const linerate::Spec&);
void serve_echo(const linerate::Spec&); // rr, churn, fanout
void serve_stream(const linerate::Spec&);
void drive_rr(const linerate::Spec&);
void drive_churn(const linerate::Spec&);
void drive_fanout(const linerate::Spec&);
void drive_stream(const linerate::Spec&);
void serve_datagrams(const linerate::Spec&); // UDP, where it is done
void drive_datagrams(const linerate::Spec&);
void dispatch(const linerate::Spec&); // only where handlers can be posted to a queue
void timers(const linerate::Spec&);

namespace linerate {

// All of them but `dispatch` and UDP, and what a system has beside.
inline std::vector<Ability> event_loop(std::vector<Ability> beside) {
    std::vector<Ability> all = {
        {"server", "http", "http", serve_http},
        {"server", "tcp", "rr", serve_echo},
        {"server", "tcp", "churn", serve_echo},
        {"server", "tcp", "fanout", serve_echo},
        {"server", "tcp", "stream", serve_stream},
        {"client", "tcp", "rr", drive_rr},
        {"client", "tcp", "churn", drive_churn},
        {"client", "tcp", "fanout", drive_fanout},
        {"client", "tcp", "stream", drive_stream},
        {"client", "none", "timers", timers},
    };
    all.insert(all.end(), beside.begin(), beside.end());
    return all;
}

} // namespace linerate
