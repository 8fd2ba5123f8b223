/* Loaded before a program's libraries: each receive that returns data costs some iterations of a loop more.
 *
 * LINERATE_BURN is the number of iterations, so that the cost follows the speed of the CPU as all else does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

static unsigned long iterations;

__attribute__((constructor)) static void read_cost(void) {
    const char *text = getenv("LINERATE_BURN");
    iterations = text ? strtoul(text, NULL, 10) : 0;
}

static ssize_t burn(ssize_t received) {
    if (received > 0) {
        for (volatile unsigned long i = 0; i < iterations; i++) {
        }
    }
    return received;
}

ssize_t recv(int socket, void *buffer, size_t length, int flags) {
    return burn(recvfrom(socket, buffer, length, flags, NULL, NULL));
}

ssize_t recvmsg(int socket, struct msghdr *message, int flags) {
    static ssize_t (*next)(int, struct msghdr *, int);
    if (!next) {
        next = (ssize_t (*)(int, struct msghdr *, int))dlsym(RTLD_NEXT, "recvmsg");
    }
    return burn(next(socket, message, flags));
}

ssize_t readv(int file, const struct iovec *parts, int count) {
    static ssize_t (*next)(int, const struct iovec *, int);
    if (!next) {
        next = (ssize_t (*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "readv");
    }
    return burn(next(file, parts, count));
}
