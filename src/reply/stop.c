/* stop.c: see stop.h. What is held back is always the longest end of the text that begins a stop
 * string, so every match starts inside it. */
#include "reply/stop.h"

void stop_init(stop *s, const slice *strings, size_t n_strings, stop_sink *sink, void *ctx)
{
    *s = (stop){.strings = strings, .n_strings = n_strings, .sink = sink, .ctx = ctx};
    s->i_string = n_strings;
    buf_init(&s->held, SIZE_MAX / 2);
}

void stop_fini(stop *s)
{
    buf_fini(&s->held);
}

/* Passes on the first n_bytes of what is held. */
static void pass(stop *s, size_t n_bytes)
{
    if (n_bytes > 0) {
        s->sink(s->ctx, slice_of(s->held.data, n_bytes));
        buf_drop_front(&s->held, n_bytes);
    }
}

/* Whether text ends with a stop string; the longest is remembered. */
static bool ends_here(stop *s, slice text, size_t *start)
{
    size_t longest = 0;
    for (size_t i = 0; i < s->n_strings; i++) {
        if (s->strings[i].len > longest && slice_ends(text, s->strings[i])) {
            longest = s->strings[i].len;
            s->i_string = i;
        }
    }
    *start = text.len - longest;
    return longest > 0;
}

static bool may_become_stop(const stop *s, slice text)
{
    for (size_t i = 0; i < s->n_strings; i++) {
        if (slice_starts(s->strings[i], text)) {
            return true;
        }
    }
    return false;
}

smoe_status stop_push(stop *s, slice text, smoe_err *err)
{
    if (stop_found(s)) {
        return SMOE_OK;
    }
    size_t n_seen = s->held.len, start = 0;
    TRY(buf_append_slice(&s->held, text, err));
    for (size_t end = n_seen + 1; end <= s->held.len; end++) {
        if (ends_here(s, slice_of(s->held.data, end), &start)) {
            pass(s, start);
            buf_clear(&s->held);
            return SMOE_OK;
        }
    }
    start = 0;
    while (start < s->held.len &&
           !may_become_stop(s, slice_of(s->held.data + start, s->held.len - start))) {
        start++;
    }
    pass(s, start);
    return SMOE_OK;
}

void stop_finish(stop *s)
{
    pass(s, s->held.len);
}
