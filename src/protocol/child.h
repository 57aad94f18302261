/* child.h: starting and ending one child process that is spoken to through pipes. */
#ifndef PROTOCOL_CHILD_H
#define PROTOCOL_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

typedef struct child {
    pid_t pid;
    int in_fd, out_fd;  /* its input and output; non-blocking, close-on-exec; -1 once closed */
    bool reaped;
    int wait_status;
} child;

/* argv[0] without a slash is looked up in PATH. The child leads its own process group, has default
 * signal handling and an empty signal mask. stderr_fd -1 = inherited. SMOE_CHILD when it cannot
 * start. */
smoe_status child_start(child *c, char *const *argv, int stderr_fd, smoe_err *err);
bool child_has_ended(child *c);
/* Closes both pipes, waits grace_ms, then SIGTERM and at last SIGKILL to its group; reaps it.
 * The exit status as a shell reports it: 128 + signal. */
int child_end(child *c, int grace_ms);

#endif
