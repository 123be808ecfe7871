#define _GNU_SOURCE
#include "CGateLinux.h"

int gate_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

int gate_epoll_control(int epoll, int operation, int fd, uint32_t events, uint64_t token) {
    struct epoll_event event = {.events = events, .data = {.u64 = token}};
    return epoll_ctl(epoll, operation, fd, &event);
}

int gate_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

int gate_timerfd(void) { return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK); }

int gate_timerfd_set(int fd, int64_t nanoseconds) {
    struct itimerspec when = {
        .it_value = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000}};
    return timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL);
}

int gate_open_unlinked(const char *directory) {
    return open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
}

int gate_open_file(const char *path, int flags, unsigned mode) {
    return open(path, flags | O_CLOEXEC, mode);
}

int gate_set_nonblocking(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

int64_t gate_monotonic_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t gate_realtime_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}


int gate_accept(int fd, struct sockaddr_storage *peer) {
    socklen_t length = sizeof *peer;
    return accept4(fd, (struct sockaddr *)peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int gate_condition_init(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    int code = pthread_condattr_init(&attributes);
    if (code != 0) return code;
    code = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (code == 0) code = pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return code;
}

int gate_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline) {
    struct timespec until = {.tv_sec = deadline / 1000000000, .tv_nsec = deadline % 1000000000};
    return pthread_cond_timedwait(condition, mutex, &until);
}
