/* pipe_io.h: reading and writing pipes without surprises: EINTR resumed or reported as asked, and a
 * reader that has gone away is a return value, never SIGPIPE. No process-wide signal setting
 * changes. */
#ifndef PROTOCOL_PIPE_IO_H
#define PROTOCOL_PIPE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* write(2) whose SIGPIPE, if any, is swallowed: -1 and errno EPIPE instead. */
ssize_t pipe_write(int fd, const void *data, size_t n_bytes);
/* All of it, waiting where fd is non-blocking. False with errno set; EPIPE = the reader is gone. */
bool pipe_write_all(int fd, const void *data, size_t n_bytes);
/* True when a read would not block (data, end of input or an error). timeout_ms as in poll(2); a
 * signal ends the wait with false and errno EINTR, a time-out with false and errno 0. */
bool pipe_readable(int fd, int timeout_ms);

#endif
