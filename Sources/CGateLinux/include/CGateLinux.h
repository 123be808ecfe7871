// System calls and constants that the Glibc module does not import. One call each, no logic.
#ifndef CGATE_LINUX_H
#define CGATE_LINUX_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

// `events` is a macro-laden union in C; the token is all the loop keeps.
int gate_epoll_create(void);
int gate_epoll_control(int epoll, int operation, int fd, uint32_t events, uint64_t token);
int gate_eventfd(void);
// A CLOCK_MONOTONIC timer descriptor, and its one expiry at an absolute time (0 disarms).
int gate_timerfd(void);
int gate_timerfd_set(int fd, int64_t nanoseconds);
// Opens an unlinked file in `directory` (O_TMPFILE, mode 0600).
int gate_open_unlinked(const char *directory);
int gate_open_file(const char *path, int flags, unsigned mode);
int gate_set_nonblocking(int fd);
// accept4 with SOCK_NONBLOCK and SOCK_CLOEXEC.
int gate_accept(int fd, struct sockaddr_storage *peer);
int64_t gate_monotonic_nanoseconds(void);
int64_t gate_realtime_nanoseconds(void);
// A condition on the monotonic clock, and a wait until that clock's `deadline` in nanoseconds.
int gate_condition_init(pthread_cond_t *condition);
int gate_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline);

static inline uint64_t gate_event_token(const struct epoll_event *event) { return event->data.u64; }
static inline uint32_t gate_event_flags(const struct epoll_event *event) { return event->events; }

#endif
