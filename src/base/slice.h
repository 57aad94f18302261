/* slice.h: borrowed bytes. Nothing here owns or terminates; a slice lives as long as its owner. */
#ifndef BASE_SLICE_H
#define BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct slice {
    const char *data;
    size_t len;
} slice;

/* For printf("%.*s", SLICE_ARG(s)). */
#define SLICE_ARG(s) (int)(s).len, (s).data

static inline slice slice_of(const void *data, size_t len)
{
    return (slice){(const char *)data, len};
}

static inline slice slice_from(const char *cstr)
{
    return (slice){cstr, strlen(cstr)};
}

static inline bool slice_eq(slice a, slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool slice_is(slice a, const char *cstr)
{
    return slice_eq(a, slice_from(cstr));
}

static inline bool slice_starts(slice a, slice prefix)
{
    return a.len >= prefix.len && (prefix.len == 0 || memcmp(a.data, prefix.data, prefix.len) == 0);
}

static inline bool slice_ends(slice a, slice suffix)
{
    return a.len >= suffix.len &&
           (suffix.len == 0 || memcmp(a.data + a.len - suffix.len, suffix.data, suffix.len) == 0);
}

#endif
