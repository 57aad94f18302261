/* pipe_io.c: see pipe_io.h. SIGPIPE goes to the thread that writes, so blocking it there for the
 * length of one write, and taking it off the pending set, hides it from the rest of the process. */
#include "protocol/pipe_io.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

ssize_t pipe_write(int fd, const void *data, size_t n_bytes)
{
    sigset_t sigpipe, before, pending;
    sigemptyset(&sigpipe);
    sigaddset(&sigpipe, SIGPIPE);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
    ssize_t n = write(fd, data, n_bytes);
    int saved = errno;
    if (n < 0 && saved == EPIPE && !was_pending) {
        int sig;
        sigpending(&pending);
        if (sigismember(&pending, SIGPIPE) == 1) {
            sigwait(&sigpipe, &sig);
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return n;
}

bool pipe_write_all(int fd, const void *data, size_t n_bytes)
{
    const char *at = data;
    while (n_bytes > 0) {
        ssize_t n = pipe_write(fd, at, n_bytes);
        if (n >= 0) {
            at += n;
            n_bytes -= (size_t)n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            struct pollfd p = {.fd = fd, .events = POLLOUT};
            poll(&p, 1, -1);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

bool pipe_readable(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = poll(&p, 1, timeout_ms);
    if (n == 0) {
        errno = 0;
    }
    return n > 0;
}
