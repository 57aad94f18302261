/* buf.h: an owned, growing byte buffer with a hard cap, so that hostile input cannot eat memory. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

typedef struct buf {
    char *data; /* NULL while empty; always NUL-terminated after the first append */
    size_t len;
    size_t cap;
    size_t max; /* appends past this fail with SMOE_RANGE */
} buf;

void buf_init(buf *b, size_t max_bytes);
void buf_fini(buf *b);
void buf_clear(buf *b); /* keeps the memory */
smoe_status buf_reserve(buf *b, size_t extra_bytes, smoe_err *err);
smoe_status buf_append(buf *b, const void *data, size_t n_bytes, smoe_err *err);
smoe_status buf_append_slice(buf *b, slice s, smoe_err *err);
smoe_status buf_puts(buf *b, const char *cstr, smoe_err *err);
smoe_status buf_putc(buf *b, char c, smoe_err *err);
smoe_status buf_printf(buf *b, smoe_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void buf_drop_front(buf *b, size_t n_bytes);
char *buf_take(buf *b); /* the caller owns the NUL-terminated bytes (mem_free); b is empty after.
                           NULL only if nothing was ever appended and memory is refused */

static inline slice buf_slice(const buf *b)
{
    return (slice){b->data, b->len};
}

#endif
