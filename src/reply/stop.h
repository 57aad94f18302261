/* stop.h: ends a reply at the first of the caller's stop strings while it streams in.
 *
 * The reply ends where a stop string is complete for the first time; of several that end at that
 * byte the longest counts. Nothing of it is passed on, and whatever may still become one is held
 * back. Pieces of whole characters come out as whole characters, wherever the cuts are. */
#ifndef REPLY_STOP_H
#define REPLY_STOP_H

#include <stdbool.h>

#include "base/buf.h"

/* One piece of the reply; borrowed for the call. */
typedef void stop_sink(void *ctx, slice text);

typedef struct stop {
    const slice *strings; /* borrowed */
    size_t n_strings;
    stop_sink *sink;
    void *ctx;
    buf held;
    size_t i_string; /* which one ended the reply; n_strings = none */
} stop;

/* No string may be empty: such a one is never found. */
void stop_init(stop *s, const slice *strings, size_t n_strings, stop_sink *sink, void *ctx);
void stop_fini(stop *s);
/* After the end of the reply nothing is passed on any more. SMOE_NOMEM. */
smoe_status stop_push(stop *s, slice text, smoe_err *err);
void stop_finish(stop *s); /* passes on what was held back */

static inline bool stop_found(const stop *s)
{
    return s->i_string < s->n_strings;
}

#endif
