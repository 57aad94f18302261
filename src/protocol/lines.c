/* lines.c: see lines.h. */
#include "protocol/lines.h"

#include <errno.h>
#include <unistd.h>

#include "base/mem.h"

enum { LINES_FIRST_BYTES = 65536 };

void lines_init(lines *l, int fd, size_t max_bytes)
{
    *l = (lines){.fd = fd, .max = max_bytes};
}

void lines_fini(lines *l)
{
    mem_free(l->data);
    *l = (lines){.fd = -1};
}

static void compact(lines *l)
{
    size_t n = l->head;
    memmove(l->data, l->data + n, l->tail - n);
    l->head = 0;
    l->tail -= n;
    l->scanned = l->scanned > n ? l->scanned - n : 0;
    l->searched = l->searched > n ? l->searched - n : 0;
}

static smoe_status make_room(lines *l, smoe_err *err)
{
    /* Only when it frees half of the buffer: the work stays linear in what is read. */
    if (l->data != NULL && (l->head == l->tail || l->head > l->cap / 2)) {
        compact(l);
    }
    if (l->tail < l->cap || l->cap == l->max) {
        return SMOE_OK;
    }
    size_t cap = l->cap == 0 ? LINES_FIRST_BYTES : l->cap * 2;
    cap = cap < l->max ? cap : l->max;
    char *data = mem_realloc(l->data, cap);
    if (data == NULL) {
        return err_nomem(err, "the input buffer", cap);
    }
    l->data = data;
    l->cap = cap;
    return SMOE_OK;
}

static bool find_newline(lines *l, size_t *at)
{
    size_t from = l->searched > l->head ? l->searched : l->head;
    const char *newline = from < l->tail ? memchr(l->data + from, '\n', l->tail - from) : NULL;
    l->searched = newline != NULL ? (size_t)(newline - l->data) : l->tail;
    *at = l->searched;
    return newline != NULL;
}

/* Drops the bytes just read up to and including the newline that ends the long line. */
static void swallow(lines *l)
{
    size_t at;
    if (!find_newline(l, &at)) {
        l->head = l->tail;
        return;
    }
    l->head = l->scanned = l->searched = at + 1;
    l->swallowing = false;
    l->too_long = true;
}

smoe_status lines_fill(lines *l, bool *progress, smoe_err *err)
{
    *progress = false;
    TRY(make_room(l, err));
    if (l->tail == l->cap) {
        size_t at;
        if (find_newline(l, &at) || (l->head == 0 && l->too_long)) {
            return SMOE_OK;
        }
        if (l->head > 0) {
            compact(l);
        } else {
            l->swallowing = true;
            l->tail = l->scanned = l->searched = 0;
        }
    }
    ssize_t n = read(l->fd, l->data + l->tail, l->cap - l->tail);
    if (n < 0) {
        if (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK) {
            *progress = true;
            return SMOE_OK;
        }
        return err_errno(err, SMOE_IO, "reading requests failed");
    }
    *progress = true;
    l->eof = n == 0;
    l->tail += (size_t)n;
    if (l->swallowing) {
        swallow(l);
    }
    return SMOE_OK;
}

enum lines_kind lines_next(lines *l, slice *line)
{
    size_t at;
    *line = (slice){NULL, 0};
    if (l->too_long) {
        l->too_long = false;
        return LINES_TOO_LONG;
    }
    if (!l->swallowing && find_newline(l, &at)) {
        *line = (slice){l->data + l->head, at - l->head};
        l->head = at + 1;
        if (l->scanned < l->head) {
            l->scanned = l->head;
        }
        return LINES_LINE;
    }
    if (!l->eof) {
        return LINES_NONE;
    }
    if (l->swallowing) {
        l->swallowing = false;
        return LINES_TOO_LONG;
    }
    if (l->head < l->tail) {
        *line = (slice){l->data + l->head, l->tail - l->head};
        l->head = l->tail;
        return LINES_CUT;
    }
    return LINES_END;
}

void lines_scan(lines *l, bool (*drop)(void *ctx, slice line), void *ctx)
{
    if (l->swallowing || l->data == NULL) {
        return;
    }
    if (l->scanned < l->head) {
        l->scanned = l->head;
    }
    const char *newline;
    while (l->scanned < l->tail &&
           (newline = memchr(l->data + l->scanned, '\n', l->tail - l->scanned)) != NULL) {
        size_t end = (size_t)(newline - l->data) + 1;
        if (drop(ctx, slice_of(l->data + l->scanned, end - 1 - l->scanned))) {
            memmove(l->data + l->scanned, l->data + end, l->tail - end);
            l->tail -= end - l->scanned;
            l->searched = l->searched < l->scanned ? l->searched : l->scanned;
        } else {
            l->scanned = end;
        }
    }
}
