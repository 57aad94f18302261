/* io_wish.c: see io_wish.h. */
#include "cache/io_wish.h"

#include <string.h>

static bool is_word(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(text, word, len) == 0;
}

/* One word; false when it is none of the four, or says what another one has said. */
static bool take_word(const char *text, size_t len, io_wish *out)
{
    bool uring = is_word(text, len, "uring"), direct = is_word(text, len, "direct");
    if ((uring || is_word(text, len, "threads")) && !out->has_kind) {
        out->has_kind = true;
        out->kind = uring ? AIO_URING : AIO_THREADS;
        return true;
    }
    if ((direct || is_word(text, len, "buffered")) && !out->has_mode) {
        out->has_mode = true;
        out->direct = direct;
        return true;
    }
    return false;
}

smoe_status io_wish_parse(const char *text, io_wish *out, smoe_err *err)
{
    io_wish wish = {0};
    for (const char *at = text; at; ) {
        size_t len = strcspn(at, ",");
        if (!take_word(at, len, &wish)) {
            return err_set(err, SMOE_USAGE,
                           "--io takes uring or threads, direct or buffered, or one of each such "
                           "as uring,direct; not \"%.40s\"", text);
        }
        at = at[len] ? at + len + 1 : NULL;
    }
    *out = wish;
    return SMOE_OK;
}

bool io_wish_allows(const io_wish *wish, io_mode mode)
{
    return (!wish->has_kind || wish->kind == mode.kind) &&
           (!wish->has_mode || wish->direct == mode.direct);
}
