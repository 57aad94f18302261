/* engine_log.c: see engine_log.h. */
#include "chat/engine_log.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEEP_BYTES = 1 << 20 };

void engine_log_open(engine_log *l)
{
    *l = (engine_log){.fd = -1};
    FILE *f = tmpfile();
    if (f == NULL) {
        return;
    }
    l->fd = fcntl(fileno(f), F_DUPFD_CLOEXEC, 3);
    fclose(f);
    if (l->fd >= 0) {
        /* Appending: after a truncation the child goes on at the new end, without a hole. */
        fcntl(l->fd, F_SETFL, O_APPEND);
    }
}

void engine_log_close(engine_log *l)
{
    if (l->fd >= 0) {
        close(l->fd);
        l->fd = -1;
    }
}

static uint64_t size_of(const engine_log *l)
{
    struct stat st;
    return l->fd >= 0 && fstat(l->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

void engine_log_mark(engine_log *l)
{
    l->mark = size_of(l);
    if (l->mark > KEEP_BYTES && ftruncate(l->fd, 0) == 0) {
        l->mark = 0;
    }
}

slice engine_log_tail(engine_log *l)
{
    uint64_t size = size_of(l);
    uint64_t from = size > l->mark + sizeof l->tail ? size - sizeof l->tail : l->mark;
    if (size <= from) {
        return (slice){l->tail, 0};
    }
    ssize_t n = pread(l->fd, l->tail, (size_t)(size - from), (off_t)from);
    slice tail = {l->tail, n > 0 ? (size_t)n : 0};
    const char *newline;
    if (from > l->mark && (newline = memchr(tail.data, '\n', tail.len)) != NULL) {
        size_t cut = (size_t)(newline - tail.data) + 1; /* the first line is only an end of one */
        tail.data += cut;
        tail.len -= cut;
    }
    return tail;
}
