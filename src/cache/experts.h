/* experts.h: the experts of a vault in memory of a given size: all of them (expert_resident.h), or
 * those of a ring (expert_cache.h). */
#ifndef CACHE_EXPERTS_H
#define CACHE_EXPERTS_H

#include "cache/expert_cache.h"
#include "cache/expert_resident.h"
#include "cache/io_wish.h"

typedef struct experts_params {
    const vault *vault; /* borrowed */
    pool *pool;         /* borrowed while opening */
    uint32_t n_slots;   /* the number of records or more: all of them, loaded while opening */
    io_mode io;
    io_wish wish;       /* io keeps to it */
    heat *heat;         /* as in expert_cache.h */
    bool (*progress)(void *ctx, uint64_t n_done, uint64_t n_total); /* of loading; may be NULL */
    void *ctx;
} experts_params;

typedef struct experts {
    expert_source *source;
    const cache_stats *stats;
    io_mode io; /* what serves: the system may have refused what was chosen */
    expert_cache cache;
    expert_resident resident;
} experts;

/* Where the system refuses io_uring, threads read; where it refuses direct reads, buffered ones;
 * SMOE_UNSUPPORTED where the wish forbids that. */
smoe_status experts_open(experts *x, const experts_params *p, smoe_err *err);
void experts_close(experts *x);
/* As expert_cache_warm; false at once where all experts are in memory. */
bool experts_warm(experts *x);

#endif
