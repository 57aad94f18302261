/* budget.c: see budget.h. */
#include "engine/budget.h"

#include <stdio.h>

static const uint64_t MIB = 1 << 20;

enum {
    OVERHEAD_MIB = 24,  /* code, stacks, headers, allocator: measured 11 MiB */
    OS_FLOOR_MIB = 512, /* left to everyone else when the machine's offer is the limit ... */
    OS_FLOOR_PART = 16  /* ... or a sixteenth of it, if that is less */
};

const char *budget_size_text(uint64_t n_bytes, char text[BUDGET_TEXT])
{
    static const char *const units[] = {"KiB", "MiB", "GiB"};
    double size = (double)n_bytes / 1024;
    int unit = 0;
    while (size >= 1024 && unit < 2) {
        size /= 1024;
        unit++;
    }
    snprintf(text, BUDGET_TEXT, "%.*f %s", size < 10 ? 2 : size < 100 ? 1 : 0, size, units[unit]);
    return text;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t limit_of(const budget_request *r)
{
    if (r->mem_limit_bytes) {
        return r->mem_limit_bytes;
    }
    if (r->available_bytes == 0) { /* a system that does not say: assume that everything fits */
        return UINT64_MAX / 2;
    }
    return r->available_bytes - min_u64(OS_FLOOR_MIB * MIB, r->available_bytes / OS_FLOOR_PART);
}

smoe_status budget_split(const budget_request *r, budget *out, smoe_err *err)
{
    out->limit_bytes = limit_of(r);
    out->fixed_bytes = r->scout_bytes + r->kv_bytes + r->scratch_bytes + OVERHEAD_MIB * MIB;
    uint64_t room = out->limit_bytes > out->fixed_bytes ? out->limit_bytes - out->fixed_bytes : 0;
    uint64_t n_fit = r->record_bytes ? room / r->record_bytes : r->n_records;
    uint64_t n_least = min_u64(r->n_ring_min, r->n_records);
    if (r->n_ring_asked && r->n_ring_asked < n_least) {
        return err_set(err, SMOE_RANGE,
                       "--ring %u is too small: one token needs %llu experts, and a "
                       "smaller ring would read every one of them every time; give at least %llu",
                       r->n_ring_asked, (unsigned long long)n_least, (unsigned long long)n_least);
    }
    if (n_fit < n_least || (r->n_ring_asked && min_u64(r->n_ring_asked, r->n_records) > n_fit)) {
        uint64_t n_want = r->n_ring_asked ? min_u64(r->n_ring_asked, r->n_records) : n_least;
        uint64_t ring_bytes = n_want * r->record_bytes;
        char limit[BUDGET_TEXT], missing[BUDGET_TEXT], fixed[BUDGET_TEXT], one[BUDGET_TEXT],
            ring[BUDGET_TEXT];
        return err_set(err, SMOE_RANGE,
                       "%s of memory are %s too few: scout, KV cache and scratch take %s, and "
                       "%llu experts of %s another %s; raise --mem-limit, or lower --ctx%s",
                       budget_size_text(out->limit_bytes, limit),
                       budget_size_text(out->fixed_bytes + ring_bytes - out->limit_bytes, missing),
                       budget_size_text(out->fixed_bytes, fixed), (unsigned long long)n_want,
                       budget_size_text(r->record_bytes, one),
                       budget_size_text(ring_bytes, ring), r->n_ring_asked ? " or --ring" : "");
    }
    /* The page cache comes out of what is above the least: the kernel can take it back, so it is no
     * reason to refuse, and what the trial of the drive chose must not decide that. */
    uint64_t n_cached = r->record_bytes ? (r->page_cache_bytes + r->record_bytes - 1) /
                                              r->record_bytes : 0;
    uint64_t n_auto = n_fit - min_u64(n_cached, n_fit - n_least);
    uint64_t n_ring = r->n_ring_asked ? r->n_ring_asked : n_auto;
    n_ring = min_u64(n_ring, r->n_records);
    out->n_ring = (uint32_t)(n_ring ? n_ring : 1);
    return SMOE_OK;
}
