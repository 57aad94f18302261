/* client.c: the client's side of the protocol: one child process, two non-blocking pipes.
 *
 * The one idea: sending never blocks. A request goes into an outbox, and whoever waits for replies
 * pumps both directions, so a large request and a talkative engine cannot wait for each other. */
#include "smoe/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "protocol/child.h"
#include "protocol/pipe_io.h"
#include "protocol/wire.h"

enum {
    OUTBOX_MAX_BYTES = 256 << 20,
    READ_BYTES = 65536,
    GRACE_MS = 2000,    /* for an engine whose input was closed */
    CHECK_MS = 500,     /* how often a silent engine is asked whether it lives */
};

struct smoe_client {
    char **argv;        /* owned copy, NULL-terminated */
    int stderr_fd;
    child process;
    bool dead;          /* ended and reaped; exit_status is known */
    bool input_broken;  /* the engine closed its input: it is heard out, then ended */
    uint64_t broken_ns;
    int exit_status;
    buf outbox;
    size_t n_sent;      /* of the outbox */
    wire_reader reader;
    slice unread;       /* within inbox */
    char inbox[READ_BYTES];
};

static void free_argv(char **argv)
{
    for (size_t i = 0; argv != NULL && argv[i] != NULL; i++) {
        mem_free(argv[i]);
    }
    mem_free(argv);
}

static char **copy_argv(const char *const *argv)
{
    size_t n = 0;
    while (argv[n] != NULL) {
        n++;
    }
    char **copy = mem_calloc(n + 1, sizeof *copy);
    for (size_t i = 0; copy != NULL && i < n; i++) {
        copy[i] = mem_strdup(argv[i]);
        if (copy[i] == NULL) {
            free_argv(copy);
            return NULL;
        }
    }
    return copy;
}

static smoe_status spawn(smoe_client *c, smoe_err *err)
{
    TRY(child_start(&c->process, c->argv, c->stderr_fd, err));
    c->dead = false;
    c->input_broken = false;
    c->exit_status = 0;
    buf_clear(&c->outbox);
    c->n_sent = 0;
    wire_reader_init(&c->reader);
    c->unread = (slice){c->inbox, 0};
    return SMOE_OK;
}

static void end(smoe_client *c, int grace_ms)
{
    if (!c->dead) {
        c->exit_status = child_end(&c->process, grace_ms);
        c->dead = true;
    }
}

smoe_status smoe_client_start(const char *const *argv, int stderr_fd, smoe_client **out,
                              smoe_err *err)
{
    smoe_client *c = mem_calloc(1, sizeof *c);
    if (c == NULL) {
        return err_nomem(err, "the engine's client", sizeof *c);
    }
    c->dead = true;
    c->stderr_fd = stderr_fd;
    buf_init(&c->outbox, OUTBOX_MAX_BYTES);
    c->argv = copy_argv(argv);
    smoe_status status = c->argv != NULL ? spawn(c, err)
                                         : err_nomem(err, "the engine's command line", 0);
    if (status != SMOE_OK) {
        smoe_client_free(c);
        return status;
    }
    *out = c;
    return SMOE_OK;
}

void smoe_client_free(smoe_client *c)
{
    if (c == NULL) {
        return;
    }
    end(c, GRACE_MS);
    free_argv(c->argv);
    buf_fini(&c->outbox);
    mem_free(c);
}

pid_t smoe_client_pid(const smoe_client *c)
{
    return c->process.pid;
}

int smoe_client_exit_status(smoe_client *c)
{
    return c->exit_status;
}

smoe_status smoe_client_restart(smoe_client *c, smoe_err *err)
{
    end(c, 0);
    return spawn(c, err);
}

static void input_broke(smoe_client *c)
{
    c->input_broken = true;
    c->broken_ns = clock_ns();
}

/* Writes as much of the outbox as the pipe takes now. */
static void flush_outbox(smoe_client *c)
{
    while (c->n_sent < c->outbox.len && !c->input_broken && !c->dead) {
        ssize_t n = pipe_write(c->process.in_fd, c->outbox.data + c->n_sent,
                               c->outbox.len - c->n_sent);
        if (n >= 0) {
            c->n_sent += (size_t)n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno != EINTR) {
            input_broke(c);
        }
    }
    buf_clear(&c->outbox);
    c->n_sent = 0;
}

static bool outbox_waits(const smoe_client *c)
{
    return c->n_sent < c->outbox.len;
}

/* Undoes a line that could not be completed for lack of memory. */
static smoe_status queue_line(smoe_client *c, size_t len_before, smoe_status status)
{
    if (status != SMOE_OK) {
        c->outbox.len = len_before;
        return status;
    }
    flush_outbox(c);
    return SMOE_OK;
}

smoe_status smoe_client_send(smoe_client *c, const smoe_client_request *request, smoe_err *err)
{
    return queue_line(c, c->outbox.len, wire_format_gen(&c->outbox, request, err));
}

smoe_status smoe_client_cancel(smoe_client *c, smoe_err *err)
{
    return queue_line(c, c->outbox.len, buf_puts(&c->outbox, "CANCEL\n", err));
}

smoe_status smoe_client_send_reset(smoe_client *c, smoe_err *err)
{
    return queue_line(c, c->outbox.len, buf_puts(&c->outbox, "RESET\n", err));
}

static smoe_status died(smoe_client *c, int grace_ms, smoe_err *err)
{
    end(c, grace_ms);
    return err_set(err, SMOE_CHILD, "the engine (%s) ended with exit status %d", c->argv[0],
                   c->exit_status);
}

/* Reads what is there. *open is false at the end of the engine's output. */
static void fill_inbox(smoe_client *c, bool *open)
{
    ssize_t n = read(c->process.out_fd, c->inbox, sizeof c->inbox);
    *open = n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
    c->unread = (slice){c->inbox, n > 0 ? (size_t)n : 0};
}

/* How long to wait: what the caller allows, in slices, so that an engine which died while something
 * else holds its output open is noticed. */
static int wait_ms(const smoe_client *c, uint64_t start_ns, int timeout_ms)
{
    int slice_ms = c->input_broken ? 50 : CHECK_MS;
    if (timeout_ms < 0) {
        return slice_ms;
    }
    uint64_t passed_ms = (clock_ns() - start_ns) / 1000000;
    int left_ms = passed_ms < (uint64_t)timeout_ms ? timeout_ms - (int)passed_ms : 0;
    return left_ms < slice_ms ? left_ms : slice_ms;
}

static bool broken_for_long(const smoe_client *c)
{
    return c->input_broken && clock_ns() - c->broken_ns > 1000000000u;
}

/* One wait and the transfers it allows. *more is false when the engine is gone and all is read. */
static smoe_status pump(smoe_client *c, int timeout_ms, bool *more, smoe_err *err)
{
    struct pollfd p[2] = {
        {.fd = c->process.out_fd, .events = POLLIN},
        /* Also with nothing to write: POLLERR tells that the engine has closed its input. */
        {.fd = c->input_broken ? -1 : c->process.in_fd, .events = outbox_waits(c) ? POLLOUT : 0},
    };
    *more = true;
    int n = poll(p, 2, timeout_ms);
    if (n < 0) {
        return errno == EINTR ? SMOE_CANCELLED
                              : err_errno(err, SMOE_IO, "waiting for the engine failed");
    }
    if ((p[1].revents & (POLLERR | POLLHUP)) != 0) {
        input_broke(c);
    } else if (p[1].revents != 0) {
        flush_outbox(c);
    }
    if (p[0].revents != 0) {
        fill_inbox(c, more);
    } else if (n == 0) {
        *more = !child_has_ended(&c->process) && !broken_for_long(c);
    }
    return SMOE_OK;
}

smoe_status smoe_client_next(smoe_client *c, int timeout_ms, smoe_reply *reply, smoe_err *err)
{
    uint64_t start_ns = clock_ns();
    while (true) {
        bool got, more;
        if (c->dead) {
            return died(c, 0, err);
        }
        smoe_err why;
        if (wire_reader_next(&c->reader, &c->unread, &got, reply, &why) != SMOE_OK) {
            end(c, 0);
            return err_set(err, SMOE_CHILD, "%s; it was ended", why.text);
        }
        if (got) {
            return SMOE_OK;
        }
        int ms = wait_ms(c, start_ns, timeout_ms);
        smoe_status status = pump(c, ms, &more, err);
        bool timed_out = timeout_ms >= 0 &&
                         clock_ns() - start_ns >= (uint64_t)timeout_ms * 1000000u;
        if (status == SMOE_CANCELLED ||
            (status == SMOE_OK && more && c->unread.len == 0 && timed_out)) {
            *reply = (smoe_reply){
                .kind = SMOE_REPLY_TIMEOUT, .prefill_s = -1, .decode_s = -1, .hit = -1};
            return SMOE_OK;
        }
        TRY(status);
        if (!more) {
            return died(c, GRACE_MS, err);
        }
    }
}
