/* rr: one request on each connection; the next one when as many bytes are back as the first response had. */
#define _GNU_SOURCE
#include "bare.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS = 128, BUFFER = 65536 };

static int next(const struct work *work, int fd) {
    return send(fd, work->request, work->request_length, MSG_NOSIGNAL) == (ssize_t)work->request_length;
}

/* Ends a connection: nothing is sent on it again. */
static void drop(const struct work *work, int fd, size_t received, int error) {
    failed(work, received > 0 ? RECEIVING : WAITING, error);
    close(fd);
}

uint64_t run_rr(const struct work *work, uint64_t start_ns, const int *sockets, uint32_t count) {
    static char buffer[BUFFER];
    struct epoll_event events[EVENTS];
    size_t *received = calloc(count, sizeof *received);
    uint64_t now = start_ns, begun = 0, done = 0;
    uint32_t waiting = 0;
    int timeout_ms = (int)(work->timeout_ns / 1000000u) + 1, epoll = epoll_create1(EPOLL_CLOEXEC);
    if (received == NULL || epoll < 0) abort();
    for (uint32_t i = 0; i < count && begun < work->operations; ++i) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        epoll_ctl(epoll, EPOLL_CTL_ADD, sockets[i], &event);
        ++begun;
        if (next(work, sockets[i])) ++waiting;
        else drop(work, sockets[i], 0, errno);
    }
    while (waiting > 0) {
        int ready = epoll_wait(epoll, events, EVENTS, timeout_ms);
        now = clock_ns();
        if (now >= work->end_ns) window_over(work);
        for (; ready == 0 && waiting > 0; --waiting) failed(work, WAITING, ETIMEDOUT);
        for (int e = 0; e < ready; ++e) {
            uint32_t i = events[e].data.u32;
            ssize_t n = recv(sockets[i], buffer, sizeof buffer, MSG_DONTWAIT);
            if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
            if (n > 0) received[i] += (size_t)n;
            if (n <= 0 || received[i] > work->response_length) {
                drop(work, sockets[i], received[i], n < 0 ? errno : n == 0 ? 0 : -1);
                --waiting;
            } else if (received[i] == work->response_length) {
                now > work->end_ns ? was_in_flight(work) : (void)++done;
                received[i] = 0;
                if (begun == work->operations || now >= work->end_ns) {
                    close(sockets[i]);
                    --waiting;
                } else if (++begun, !next(work, sockets[i])) {
                    drop(work, sockets[i], 0, errno);
                    --waiting;
                }
            }
        }
    }
    close(epoll);
    free(received);
    return done;
}
