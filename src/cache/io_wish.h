/* io_wish.h: what a person or a test wants of the reads (--io): a mechanism, a mode, or both. What
 * is wished is not weighed against anything, and what cannot be had is refused, never replaced. */
#ifndef CACHE_IO_WISH_H
#define CACHE_IO_WISH_H

#include "cache/io_trial.h"

typedef struct io_wish { /* the zero value: whatever serves best */
    bool has_kind, has_mode;
    aio_kind kind; /* with has_kind */
    bool direct;   /* with has_mode */
} io_wish;

/* "uring" or "threads", "direct" or "buffered", or one of each with a comma between, in any order;
 * NULL wishes nothing. SMOE_USAGE. */
smoe_status io_wish_parse(const char *text, io_wish *out, smoe_err *err);
bool io_wish_allows(const io_wish *wish, io_mode mode); /* whatever its depth */

#endif
