/* experts.c: see experts.h. */
#include "cache/experts.h"

static smoe_status open_source(experts *x, const experts_params *p, smoe_err *err)
{
    if (p->n_slots < p->vault->n_records) {
        const expert_cache_params params = {.vault = p->vault, .n_slots = p->n_slots,
                                            .kind = x->io.kind, .direct = x->io.direct,
                                            .depth = x->io.depth, .heat = p->heat};
        x->source = &x->cache.source;
        x->stats = &x->cache.stats;
        return expert_cache_init(&x->cache, &params, err);
    }
    const expert_resident_params params = {.vault = p->vault, .pool = p->pool,
                                           .kind = x->io.kind, .direct = x->io.direct,
                                           .progress = p->progress, .progress_ctx = p->ctx};
    x->source = &x->resident.source;
    x->stats = &x->resident.stats;
    return expert_resident_init(&x->resident, &params, err);
}

smoe_status experts_open(experts *x, const experts_params *p, smoe_err *err)
{
    *x = (experts){.io = p->io};
    for (;;) {
        smoe_status status = open_source(x, p, err);
        if (status != SMOE_UNSUPPORTED) {
            return status;
        }
        if (x->io.kind == AIO_URING && !p->wish.has_kind) {
            x->io.kind = AIO_THREADS;
        } else if (x->io.direct && !p->wish.has_mode) {
            x->io.direct = false;
        } else {
            return status;
        }
    }
}

bool experts_warm(experts *x)
{
    return x->source == &x->cache.source && expert_cache_warm(&x->cache);
}

void experts_close(experts *x)
{
    expert_cache_fini(&x->cache);
    expert_resident_fini(&x->resident);
    *x = (experts){0};
}
