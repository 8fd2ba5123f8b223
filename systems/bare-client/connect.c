/* Sockets, as sdk/CONTRACT.md requires them: TCP_NODELAY, the spec's source addresses in turn. */
#define _GNU_SOURCE
#include "bare.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int connected(const struct work *work, uint64_t turn) {
    const struct timeval timeout = {.tv_sec = (time_t)(work->timeout_ns / 1000000000u),
                                    .tv_usec = (suseconds_t)(work->timeout_ns % 1000000000u / 1000u)};
    const int on = 1;
    int fd = socket(work->to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), refused = fd < 0;
    if (!refused) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!refused) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    if (!refused && work->source_count > 0) {
        /* The port is chosen by connect(2), so that one port serves several destinations. */
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
        const struct sockaddr_storage *source = &work->sources[turn % work->source_count];
        refused = bind(fd, (const struct sockaddr *)source, work->address_length) != 0;
    }
    if (!refused) refused = connect(fd, (const struct sockaddr *)&work->to, work->address_length) != 0;
    if (!refused) return fd;
    /* A blocking connect that exceeds its time ends with EINPROGRESS. */
    failed(work, CONNECTING, errno == EINPROGRESS ? ETIMEDOUT : errno);
    if (fd >= 0) close(fd);
    return -1;
}
