/* crr: on each slot connect, send, receive as many bytes as the first response had, wait for the server's end, close,
 * repeat. The end that closes first keeps the port in TIME_WAIT and pays for it; with load generators that is the server. */
#define _GNU_SOURCE
#include "bare.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS = 128, BUFFER = 65536 };

struct slot {
    int fd;
    size_t received;
};

/* Begins operations on a slot until one waits for its response; 0 if none is left. */
static int begin(const struct work *work, struct slot *slot, uint32_t index, int epoll, uint64_t *begun) {
    while (*begun < work->operations) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.u32 = index};
        slot->received = 0;
        slot->fd = connected(work, (*begun)++);
        if (slot->fd < 0 && clock_ns() < work->end_ns) continue;
        if (slot->fd < 0) return 0;
        if (send(slot->fd, work->request, work->request_length, MSG_NOSIGNAL) == (ssize_t)work->request_length) {
            epoll_ctl(epoll, EPOLL_CTL_ADD, slot->fd, &event);
            return 1;
        }
        failed(work, WAITING, errno);
        close(slot->fd);
    }
    return 0;
}

uint64_t run_crr(const struct work *work, uint64_t start_ns) {
    static char buffer[BUFFER];
    struct epoll_event events[EVENTS];
    struct slot *slots = calloc(work->connections, sizeof *slots);
    uint64_t now = start_ns, begun = 0, done = 0;
    uint32_t waiting = 0;
    int timeout_ms = (int)(work->timeout_ns / 1000000u) + 1, epoll = epoll_create1(EPOLL_CLOEXEC);
    if (slots == NULL || epoll < 0) abort();
    for (uint32_t i = 0; i < work->connections; ++i) waiting += (uint32_t)begin(work, &slots[i], i, epoll, &begun);
    while (waiting > 0 && now < work->end_ns) {
        int ready = epoll_wait(epoll, events, EVENTS, timeout_ms);
        now = clock_ns();
        for (; ready == 0 && waiting > 0; --waiting) failed(work, WAITING, ETIMEDOUT);
        for (int e = 0; e < ready; ++e) {
            struct slot *slot = &slots[events[e].data.u32];
            ssize_t n = 1;
            while (slot->received < work->response_length && n > 0)
                if ((n = recv(slot->fd, buffer, sizeof buffer, MSG_DONTWAIT)) > 0) slot->received += (size_t)n;
            int is_short = n < 0 && errno == EAGAIN, is_complete = slot->received == work->response_length;
            /* The next edge reports more bytes, or the end. */
            if (is_short || (is_complete && !(events[e].events & EPOLLRDHUP))) continue;
            if (is_complete) ++done;
            else failed(work, slot->received > 0 ? RECEIVING : WAITING, n < 0 ? errno : n == 0 ? 0 : -1);
            close(slot->fd);
            if (now >= work->end_ns || !begin(work, slot, events[e].data.u32, epoll, &begun)) --waiting;
        }
    }
    close(epoll);
    free(slots);
    return done;
}
