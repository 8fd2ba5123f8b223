/* An open loop, with even or random gaps (Poisson): a request when it is due, on the connection that was free last. Those
 * that are due while none is free wait. */
#define _GNU_SOURCE
#include "bare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 128, BUFFER = 65536 };

struct lanes {
    const int *sockets;
    size_t *received;
    uint32_t *free; /* a stack */
    uint32_t free_count, open;
    uint64_t due_ns; /* of the next operation */
};

static uint64_t gap(const struct work *work) {
    return work->has_random_gaps ? (uint64_t)(-log(1.0 - drand48()) * (double)work->gap_ns) : work->gap_ns;
}

/* Ends a connection: nothing is sent on it again, also if the peer has closed it while it was free. */
static void drop(const struct work *work, struct lanes *lanes, uint32_t i, enum phase phase, int error) {
    failed(work, phase, error);
    close(lanes->sockets[i]);
    --lanes->open;
    for (uint32_t at = 0; at < lanes->free_count; ++at)
        if (lanes->free[at] == i) lanes->free[at] = lanes->free[--lanes->free_count];
}

/* Sends what is due; returns how many operations have begun. */
static uint64_t begin(const struct work *work, struct lanes *lanes, uint64_t now, uint64_t begun) {
    while (lanes->free_count > 0 && begun < work->operations && now < work->end_ns && now >= lanes->due_ns) {
        uint32_t i = lanes->free[--lanes->free_count];
        ++begun;
        lanes->due_ns += gap(work);
        if (send(lanes->sockets[i], work->request, work->request_length, MSG_NOSIGNAL) != (ssize_t)work->request_length)
            drop(work, lanes, i, WAITING, errno);
    }
    return begun;
}

/* Takes what has arrived on a connection; returns whether an operation has succeeded within the window. */
static int take(const struct work *work, struct lanes *lanes, uint32_t i, uint64_t now) {
    static char buffer[BUFFER];
    ssize_t n = recv(lanes->sockets[i], buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (n > 0) lanes->received[i] += (size_t)n;
    if (n <= 0 || lanes->received[i] > work->response_length) {
        drop(work, lanes, i, lanes->received[i] > 0 ? RECEIVING : WAITING, n < 0 ? errno : n == 0 ? 0 : -1);
        return 0;
    }
    if (lanes->received[i] < work->response_length) return 0;
    lanes->received[i] = 0;
    lanes->free[lanes->free_count++] = i;
    if (now <= work->end_ns) return 1;
    was_in_flight(work);
    return 0;
}

uint64_t run_paced(const struct work *work, uint64_t start_ns, const int *sockets, uint32_t count) {
    struct epoll_event events[EVENTS];
    struct lanes lanes = {sockets, calloc(count, sizeof(size_t)), calloc(count, sizeof(uint32_t)), count, count, start_ns};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    uint64_t begun = 0, done = 0;
    if (lanes.received == NULL || lanes.free == NULL || epoll < 0) abort();
    prctl(PR_SET_TIMERSLACK, 1);
    for (uint32_t i = 0; i < count; ++i) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        epoll_ctl(epoll, EPOLL_CTL_ADD, sockets[i], &event);
        lanes.free[i] = i;
    }
    while (lanes.open > 0) {
        uint64_t now = clock_ns();
        begun = begin(work, &lanes, now, begun);
        int is_over = begun == work->operations || now >= work->end_ns;
        if (is_over && now >= work->end_ns) window_over(work);
        if (is_over && lanes.free_count == lanes.open) break;
        uint64_t due = lanes.due_ns < work->end_ns ? lanes.due_ns : work->end_ns;
        uint64_t wait = is_over || lanes.free_count == 0 ? work->timeout_ns : due > now ? due - now : 0;
        struct timespec timeout = {(time_t)(wait / 1000000000u), (long)(wait % 1000000000u)};
        int ready = epoll_pwait2(epoll, events, EVENTS, &timeout, NULL);
        if (ready == 0 && wait == work->timeout_ns) {
            for (uint32_t i = lanes.free_count; i < lanes.open; ++i) failed(work, WAITING, ETIMEDOUT);
            break;
        }
        now = clock_ns();
        for (int e = 0; e < ready; ++e) done += (uint64_t)take(work, &lanes, events[e].data.u32, now);
    }
    close(epoll);
    free(lanes.received);
    free(lanes.free);
    return done;
}
