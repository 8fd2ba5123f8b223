// A server of HTTP/1.1 in C. PLANT_US: microseconds of audit_request for each request. WRITES: parts of a response,
// without TCP_NODELAY if DELAY is set. ALLOCATIONS: for each request. THREADS: of the server; LOCKED: they hold one
// lock for each request. YIELD: they leave the CPU to the other in it.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
static long plant, writes = 1, allocations, is_locked, yields;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long nanos(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}
__attribute__((noinline)) void audit_request(long us) {
    long end = nanos() + us * 1000;
    while (nanos() < end) {}
}
__attribute__((noinline)) void copy_headers(long count) {
    void *all[1000];
    for (long i = 0; i < count; i++) memset(all[i] = malloc(300), 1, 300);
    for (long i = 0; i < count; i++) free(all[i]);
}
static long number(const char *name, long otherwise) {
    return getenv(name) ? atol(getenv(name)) : otherwise;
}
static void *serve(void *unused) {
    struct sockaddr_in at = { AF_INET, htons(number("PORT", 8080)), { htonl(INADDR_LOOPBACK) } };
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 512)) exit(1);
    struct epoll_event event = { EPOLLIN, { .fd = listener } }, events[64];
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int ready = epoll_wait(poll, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                event.data.fd = accept(listener, 0, 0);
                if (!getenv("DELAY")) setsockopt(event.data.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event);
                continue;
            }
            char request[4096];
            if (read(fd, request, sizeof request) <= 0) { close(fd); continue; }
            if (is_locked) pthread_mutex_lock(&lock);
            if (yields) sched_yield();
            if (plant) audit_request(plant);
            if (allocations) copy_headers(allocations);
            size_t length = sizeof answer - 1;
            for (long part = 0, from = 0; part < writes; part++) {
                long end = length * (part + 1) / writes;
                if (write(fd, answer + from, end - from) < 0) break;
                from = end;
            }
            if (is_locked) pthread_mutex_unlock(&lock);
        }
    }
    return unused;
}
int main(void) {
    plant = number("PLANT_US", 0), writes = number("WRITES", 1), allocations = number("ALLOCATIONS", 0);
    is_locked = number("LOCKED", 0), yields = number("YIELD", 0);
    pthread_t thread;
    for (long more = number("THREADS", 1); more > 1; more--) pthread_create(&thread, 0, serve, 0);
    serve(0);
}
