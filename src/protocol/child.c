/* child.c: see child.h. */
#include "protocol/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

extern char **environ;

enum { TERM_GRACE_MS = 1000 };

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

/* Away from 0, 1 and 2, which the child's redirections overwrite, and closed in every other child.
 */
static bool move_up(int *fd)
{
    int moved = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
    close(*fd);
    *fd = moved;
    return moved >= 0;
}

static bool open_pipe(int fds[2])
{
    if (pipe(fds) != 0) {
        fds[0] = fds[1] = -1;
        return false;
    }
    bool ok = move_up(&fds[0]);
    return move_up(&fds[1]) && ok;
}

static int spawn_with(child *c, char *const *argv, int in, int out, int err_fd)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int e = posix_spawn_file_actions_init(&actions);
    if (e != 0) {
        return e;
    }
    e = posix_spawnattr_init(&attr);
    if (e != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return e;
    }
    sigemptyset(&none);
    sigemptyset(&all);
    sigaddset(&all, SIGPIPE);
    sigaddset(&all, SIGINT);
    sigaddset(&all, SIGTERM);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                        POSIX_SPAWN_SETSIGDEF);
    e = posix_spawn_file_actions_adddup2(&actions, in, 0);
    e = e != 0 ? e : posix_spawn_file_actions_adddup2(&actions, out, 1);
    if (err_fd >= 0) {
        e = e != 0 ? e : posix_spawn_file_actions_adddup2(&actions, err_fd, 2);
    }
    e = e != 0 ? e : posix_spawnp(&c->pid, argv[0], &actions, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return e;
}

static bool set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

smoe_status child_start(child *c, char *const *argv, int stderr_fd, smoe_err *err)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    smoe_status status = SMOE_OK;
    *c = (child){.pid = -1, .in_fd = -1, .out_fd = -1};
    if (!open_pipe(in) || !open_pipe(out) || !set_nonblocking(in[1]) || !set_nonblocking(out[0])) {
        status = err_errno(err, SMOE_CHILD, "no pipes for the engine");
        goto out;
    }
    /* Duplicated high: a stderr_fd of 0 or 1 would be overwritten before it is used. */
    int err_fd = -1;
    if (stderr_fd >= 0 && (err_fd = fcntl(stderr_fd, F_DUPFD_CLOEXEC, 3)) < 0) {
        status = err_errno(err, SMOE_CHILD, "no descriptor for the engine's messages");
        goto out;
    }
    int e = spawn_with(c, argv, in[0], out[1], err_fd);
    close_fd(&err_fd);
    if (e != 0) {
        errno = e;
        c->pid = -1;
        status = err_errno(err, SMOE_CHILD, "%s could not be started", argv[0]);
        goto out;
    }
    c->in_fd = in[1];
    c->out_fd = out[0];
    in[1] = out[0] = -1;
out:
    close_fd(&in[0]);
    close_fd(&in[1]);
    close_fd(&out[0]);
    close_fd(&out[1]);
    return status;
}

bool child_has_ended(child *c)
{
    if (!c->reaped) {
        pid_t pid;
        do {
            pid = waitpid(c->pid, &c->wait_status, WNOHANG);
        } while (pid < 0 && errno == EINTR);
        c->reaped = pid != 0;
        if (pid < 0) {
            c->wait_status = 0; /* someone else reaped it; how it ended is lost */
        }
    }
    return c->reaped;
}

static bool ends_within(child *c, int ms)
{
    uint64_t start_ns = clock_ns();
    int step_ms = 1;
    while (!child_has_ended(c)) {
        if (clock_ns() - start_ns >= (uint64_t)ms * 1000000u) {
            return false;
        }
        poll(NULL, 0, step_ms);
        step_ms = step_ms < 20 ? step_ms * 2 : 20;
    }
    return true;
}

int child_end(child *c, int grace_ms)
{
    close_fd(&c->in_fd);
    close_fd(&c->out_fd);
    if (!ends_within(c, grace_ms)) {
        kill(-c->pid, SIGTERM);
        if (!ends_within(c, TERM_GRACE_MS)) {
            kill(-c->pid, SIGKILL);
            while (!c->reaped) {
                ends_within(c, 1000);
            }
        }
    }
    return WIFSIGNALED(c->wait_status) ? 128 + WTERMSIG(c->wait_status)
                                       : WEXITSTATUS(c->wait_status);
}
