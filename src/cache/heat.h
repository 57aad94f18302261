/* heat.h: how often each expert was demanded: counts that fade, and the file that keeps them from
 * one engine to the next.
 *
 * When the counts have reached 2,048 per record on average they are all halved, so what a model was
 * asked long ago weighs less and less. Nothing depends on the counts but what is read while nobody
 * asks.
 *
 * The file, all numbers little-endian:
 *
 *    0   8  "smoeheat"
 *    8   4  version, 1
 *   12   4  n_layer
 *   16   4  n_expert
 *   20  32  the vault's lineage, hex digits
 *   52      u32 [n_layer * n_expert]: the counts, by layer, then expert; 0 where there is no record
 *    ..  8  XXH3-64 of everything before
 *
 * It says nothing about a conversation beyond these counts. A file that is damaged, of another
 * version or of another lineage is refused whole. */
#ifndef CACHE_HEAT_H
#define CACHE_HEAT_H

#include "formats/vault.h"

typedef struct heat {
    const vault *vault; /* borrowed */
    uint32_t *counts;   /* [n_layer * n_expert] */
    uint64_t sum;       /* of the counts */
    uint64_t sum_max;   /* they are halved when it is reached */
    bool is_changed;    /* counted since heat_init, heat_load or heat_save */
} heat;

smoe_status heat_init(heat *h, const vault *v, smoe_err *err); /* all zero */
void heat_fini(heat *h);
void heat_count(heat *h, uint32_t record);

/* Replaces the counts by those of the file; on an error they stay. A file that is not there is no
 * error and changes nothing. SMOE_FORMAT: not a history of this vault. */
smoe_status heat_load(heat *h, const char *path, smoe_err *err);
/* Whole or not at all, by rename. On an error the file is as it was. */
smoe_status heat_save(heat *h, const char *path, smoe_err *err);

#endif
