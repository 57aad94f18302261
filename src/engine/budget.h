/* budget.h: how the one memory budget is split (design A5). Pure arithmetic, so that a test can
 * walk it. */
#ifndef ENGINE_BUDGET_H
#define ENGINE_BUDGET_H

#include <stdint.h>

#include "base/err.h"

typedef struct budget_request {
    uint64_t mem_limit_bytes;   /* --mem-limit; 0 = what the machine offers */
    uint64_t available_bytes;   /* what the machine offers; 0 = unknown */
    uint64_t scout_bytes, kv_bytes, scratch_bytes;
    uint64_t page_cache_bytes;  /* what buffered reads leave in the page cache for a moment */
    uint64_t record_bytes;
    uint64_t n_records;
    uint32_t n_ring_min;        /* sparse layers x experts per token */
    uint32_t n_ring_asked;      /* --ring; 0 = auto */
} budget_request;

typedef struct budget {
    uint64_t limit_bytes;       /* the whole budget */
    uint64_t fixed_bytes;       /* scout + KV + scratch + overhead */
    uint32_t n_ring;
} budget;

enum { BUDGET_TEXT = 32 };

/* "12.3 GiB", "450 KiB": the unit that leaves at least one digit before the point. */
const char *budget_size_text(uint64_t n_bytes, char text[BUDGET_TEXT]);

/* SMOE_RANGE, with the numbers, when the budget or --ring is too small for one token's experts.
 * limit_bytes and fixed_bytes are set even then. */
smoe_status budget_split(const budget_request *request, budget *out, smoe_err *err);

#endif
