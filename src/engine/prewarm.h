/* prewarm.h: what an engine does while nobody asks it anything: it reads the experts that were
 * demanded most into free slots, and keeps the history that tells which these are.
 *
 * The history lies beside the vault as "<vault>.heat" (cache/heat.h). It is read once and written
 * at the end and once a minute while idle. It is worth nothing but time: one that cannot be read or
 * written costs a sentence in the log and never a request. */
#ifndef ENGINE_PREWARM_H
#define ENGINE_PREWARM_H

#include "cache/experts.h"

typedef struct prewarm {
    heat heat;
    char *path;        /* NULL = off */
    uint64_t saved_ns; /* when the history was read or last written */
    void (*log)(void *ctx, const char *sentence); /* may be NULL */
    void *log_ctx;
} prewarm;

smoe_status prewarm_init(prewarm *w, const vault *v, void (*log)(void *ctx, const char *sentence),
                         void *log_ctx, smoe_err *err);
void prewarm_fini(prewarm *w); /* writes the history if it has changed; fine when zero */
/* Does, without waiting for the drive, what there is to do, and returns in how many milliseconds
 * there will be more; -1 = never, unless a request comes. */
int prewarm_step(prewarm *w, experts *x);

#endif
