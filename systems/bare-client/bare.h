/* The interface between main.cpp (spec and result) and the loops in C. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tally;

struct work {
    struct sockaddr_storage to;
    const struct sockaddr_storage *sources; /* local addresses, used in turn; may be none */
    size_t source_count;
    socklen_t address_length;
    const char *request;
    size_t request_length;
    size_t response_length; /* of the first response, and so of each */
    uint32_t connections;
    uint64_t operations; /* UINT64_MAX: no limit */
    uint64_t end_ns;     /* no operation starts after it; UINT64_MAX: no limit */
    uint64_t timeout_ns;
    uint64_t gap_ns; /* between two operations of an open loop; the mean, if gaps are random */
    int has_random_gaps;
    struct tally *tally; /* of main.cpp */
};

enum phase { CONNECTING, WAITING, RECEIVING };

/* A failed operation: `error` is an errno, 0 if the peer has closed the connection, -1 if the length is wrong. */
void failed(const struct work *work, enum phase phase, int error);

/* The window has ended: what has begun is awaited, and counts no more. May be called again. */
void window_over(const struct work *work);

/* An operation has succeeded after the end of the window. */
void was_in_flight(const struct work *work);

uint64_t clock_ns(void);

/* A connected socket, or -1 after failed(). The connect blocks: between namespaces of one machine it does not sleep. */
int connected(const struct work *work, uint64_t turn);

/* All return the number of operations that succeeded. */
uint64_t run_rr(const struct work *work, uint64_t start_ns, const int *sockets, uint32_t count);
uint64_t run_crr(const struct work *work, uint64_t start_ns);
uint64_t run_paced(const struct work *work, uint64_t start_ns, const int *sockets, uint32_t count);

#ifdef __cplusplus
}
#endif
