/* cache_stats.h: what a source of experts counts, from its opening on. A request's share is the
 * difference of two copies. */
#ifndef CACHE_CACHE_STATS_H
#define CACHE_CACHE_STATS_H

#include <stdint.h>

typedef struct cache_stats {
    uint64_t n_acquires;  /* experts demanded ... */
    uint64_t n_hits;      /* ... and found in RAM at that moment */
    uint64_t n_evictions;
    uint64_t bytes_read;
    uint64_t read_ns;     /* time in which at least one read was under way */
    uint64_t wait_ns;     /* time in which the model had nothing to compute but waited for one */
    /* Read on a hint; of these, demanded later; of these not demanded, those that gave way to
     * others or to the next hint. */
    uint64_t n_guessed, n_guesses_used, n_guesses_wasted;
    /* Read while nothing was asked for; of these, demanded later; given up undemanded. */
    uint64_t n_warmed, n_warmed_used, n_warmed_wasted;
} cache_stats;

#endif
