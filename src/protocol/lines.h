/* lines.h: lines from a file descriptor, with a cap.
 *
 * Owns one buffer that never exceeds the cap; when it is full nothing more is read, so a sender
 * feels back-pressure instead of filling memory. A line that alone exceeds the cap is swallowed to
 * its end and reported once, in its place. Lines may be inspected, and removed, before their turn.
 */
#ifndef PROTOCOL_LINES_H
#define PROTOCOL_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/slice.h"

typedef struct lines {
    int fd;
    char *data;      /* owned */
    size_t cap, max;
    size_t head;     /* first byte not yet handed out */
    size_t tail;     /* end of what was read */
    size_t scanned;  /* before it lie only complete lines that lines_scan has shown */
    size_t searched; /* no newline between head and here */
    bool eof;
    bool swallowing; /* inside a line that is too long */
    bool too_long;   /* such a line has ended and waits to be reported */
} lines;

void lines_init(lines *l, int fd, size_t max_bytes);
void lines_fini(lines *l);

/* One read(2) if the buffer has room; call it when fd is readable. *progress is false when the
 * buffer is full. SMOE_IO, SMOE_NOMEM. A would-block or an interrupted read is no error. */
smoe_status lines_fill(lines *l, bool *progress, smoe_err *err);

enum lines_kind {
    LINES_NONE,     /* no complete line yet */
    LINES_LINE,
    LINES_TOO_LONG, /* a line longer than the cap was skipped */
    LINES_CUT,      /* end of input inside a line: *line is what there was of it */
    LINES_END,      /* end of input */
};
/* The next line without its '\n'; borrowed until the next call on l. */
enum lines_kind lines_next(lines *l, slice *line);
/* Shows each complete line once, ahead of its turn; drop returns true to remove that line. */
void lines_scan(lines *l, bool (*drop)(void *ctx, slice line), void *ctx);

#endif
