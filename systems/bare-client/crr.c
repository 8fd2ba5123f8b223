/* crr: on each slot connect, send, receive as many bytes as the first response had, wait for the server's end, close,
 * repeat. The end that closes first keeps the port in TIME_WAIT and pays for it; with load generators that is the server.
 * A socket that is closed at both ends is reset and connected again (docs/decisions/engine.md). */
#define _GNU_SOURCE
#include "bare.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS = 128, BUFFER = 65536 };

struct slot {
    int fd; /* -1: none; else a socket that may be connected */
    size_t received;
};

/* Begins operations on a slot until one waits for its response; 0 if none is left. */
static int begin(const struct work *work, struct slot *slot, uint32_t index, int epoll, uint64_t *begun) {
    while (*begun < work->operations) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.u32 = index};
        int is_new = slot->fd < 0;
        slot->received = 0;
        if (is_new) slot->fd = connected(work, *begun);
        else if (connect(slot->fd, (const struct sockaddr *)&work->to, work->address_length) != 0) {
            failed(work, CONNECTING, errno == EINPROGRESS ? ETIMEDOUT : errno);
            close(slot->fd);
            slot->fd = -1;
        }
        ++*begun;
        if (slot->fd < 0 && clock_ns() < work->end_ns) continue;
        if (slot->fd < 0) return 0;
        if (send(slot->fd, work->request, work->request_length, MSG_NOSIGNAL) == (ssize_t)work->request_length) {
            if (is_new) epoll_ctl(epoll, EPOLL_CTL_ADD, slot->fd, &event);
            return 1;
        }
        failed(work, WAITING, errno);
        close(slot->fd);
        slot->fd = -1;
    }
    return 0;
}

/* Ends a connection that the peer has closed; keeps the socket if nothing of the connection is left. */
static void end(struct slot *slot) {
    const struct sockaddr none = {.sa_family = AF_UNSPEC};
    unsigned char state = 0; /* the first field of tcp_info */
    socklen_t length = sizeof state;
    if (shutdown(slot->fd, SHUT_WR) == 0 && getsockopt(slot->fd, IPPROTO_TCP, TCP_INFO, &state, &length) == 0 &&
        state == TCP_CLOSE && connect(slot->fd, &none, sizeof none) == 0)
        return;
    close(slot->fd);
    slot->fd = -1;
}

uint64_t run_crr(const struct work *work, uint64_t start_ns) {
    static char buffer[BUFFER];
    struct epoll_event events[EVENTS];
    struct slot *slots = calloc(work->connections, sizeof *slots);
    uint64_t now = start_ns, begun = 0, done = 0;
    uint32_t waiting = 0;
    int timeout_ms = (int)(work->timeout_ns / 1000000u) + 1, epoll = epoll_create1(EPOLL_CLOEXEC);
    if (slots == NULL || epoll < 0) abort();
    for (uint32_t i = 0; i < work->connections; ++i) slots[i].fd = -1;
    for (uint32_t i = 0; i < work->connections; ++i) waiting += (uint32_t)begin(work, &slots[i], i, epoll, &begun);
    while (waiting > 0) {
        int ready = epoll_wait(epoll, events, EVENTS, timeout_ms);
        now = clock_ns();
        if (now >= work->end_ns) window_over(work);
        for (; ready == 0 && waiting > 0; --waiting) failed(work, WAITING, ETIMEDOUT);
        for (int e = 0; e < ready; ++e) {
            struct slot *slot = &slots[events[e].data.u32];
            ssize_t n = 1;
            while (slot->received < work->response_length && n > 0)
                if ((n = recv(slot->fd, buffer, sizeof buffer, MSG_DONTWAIT)) > 0) slot->received += (size_t)n;
            int is_short = n < 0 && errno == EAGAIN, is_complete = slot->received == work->response_length;
            /* The next edge reports more bytes, or the end. */
            if (is_short || (is_complete && !(events[e].events & EPOLLRDHUP))) continue;
            if (is_complete) now > work->end_ns ? was_in_flight(work) : (void)++done;
            else failed(work, slot->received > 0 ? RECEIVING : WAITING, n < 0 ? errno : n == 0 ? 0 : -1);
            end(slot);
            if (now < work->end_ns && begin(work, slot, events[e].data.u32, epoll, &begun)) continue;
            if (slot->fd >= 0) close(slot->fd);
            --waiting;
        }
    }
    close(epoll);
    free(slots);
    return done;
}
