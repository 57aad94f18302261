/* buf.c: see buf.h. */
#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

void buf_init(buf *b, size_t max_bytes)
{
    *b = (buf){.max = max_bytes};
}

void buf_fini(buf *b)
{
    mem_free(b->data);
    *b = (buf){0};
}

void buf_clear(buf *b)
{
    b->len = 0;
    if (b->data) {
        b->data[0] = '\0';
    }
}

smoe_status buf_reserve(buf *b, size_t extra_bytes, smoe_err *err)
{
    if (extra_bytes > b->max || b->len > b->max - extra_bytes) {
        return err_set(err, SMOE_RANGE, "a text of more than %zu bytes is not accepted here",
                       b->max);
    }
    size_t need = b->len + extra_bytes + 1; /* room for the NUL */
    if (need <= b->cap) {
        return SMOE_OK;
    }
    size_t cap = b->cap < 64 ? 64 : b->cap;
    while (cap < need) {
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    }
    char *data = mem_realloc(b->data, cap);
    if (!data) {
        return err_nomem(err, "a text buffer", cap);
    }
    data[b->len] = '\0';
    b->data = data;
    b->cap = cap;
    return SMOE_OK;
}

smoe_status buf_append(buf *b, const void *data, size_t n_bytes, smoe_err *err)
{
    TRY(buf_reserve(b, n_bytes, err));
    if (n_bytes) {
        memcpy(b->data + b->len, data, n_bytes);
    }
    b->len += n_bytes;
    b->data[b->len] = '\0';
    return SMOE_OK;
}

smoe_status buf_append_slice(buf *b, slice s, smoe_err *err)
{
    return buf_append(b, s.data, s.len, err);
}

smoe_status buf_puts(buf *b, const char *cstr, smoe_err *err)
{
    return buf_append(b, cstr, strlen(cstr), err);
}

smoe_status buf_putc(buf *b, char c, smoe_err *err)
{
    return buf_append(b, &c, 1, err);
}

smoe_status buf_printf(buf *b, smoe_err *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0) {
        return err_set(err, SMOE_INTERNAL, "the format \"%s\" cannot be printed", fmt);
    }
    TRY(buf_reserve(b, (size_t)n, err));
    va_start(args, fmt);
    vsnprintf(b->data + b->len, (size_t)n + 1, fmt, args);
    va_end(args);
    b->len += (size_t)n;
    return SMOE_OK;
}

void buf_drop_front(buf *b, size_t n_bytes)
{
    if (n_bytes >= b->len) {
        buf_clear(b);
        return;
    }
    memmove(b->data, b->data + n_bytes, b->len - n_bytes + 1);
    b->len -= n_bytes;
}

char *buf_take(buf *b)
{
    char *data = b->data ? b->data : mem_strdup("");
    *b = (buf){.max = b->max};
    return data;
}
