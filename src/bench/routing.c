/* routing.c: see routing.h. */
#include "bench/routing.h"

#include <string.h>

#include "base/dmath.h"
#include "base/mem.h"
#include "base/rng.h"

const routing_law ROUTING_STICKY = {.zipf = 1.9, .reuse = 0.18};
const routing_law ROUTING_UNIFORM = {0};

struct routing {
    trace_shape shape;
    double reuse;
    double *weights;    /* [n_expert] by place */
    uint16_t *order;    /* [n_layer][n_expert]: the expert at each place */
    uint16_t *previous; /* [n_layer][n_used] */
    uint8_t *is_used;   /* [n_expert]: chosen by the token that is choosing */
    rng *rngs;          /* [n_layer]: so that the order in which layers are asked does not matter */
    bool *has_previous; /* [n_layer] */
};

static void shuffle(rng *random, uint16_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        order[i] = (uint16_t)i;
    }
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = (uint32_t)(rng_next(random) % i);
        uint16_t kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
}

static void draw_orders(routing *r, const routing_law *law, uint64_t seed)
{
    rng seeds = {seed};
    for (uint32_t place = 0; place < r->shape.n_expert; place++) {
        r->weights[place] = dmath_pow(1 + place / (double)r->shape.n_used, -law->zipf);
    }
    for (uint32_t layer = 0; layer < r->shape.n_layer; layer++) {
        r->rngs[layer] = (rng){rng_next(&seeds)};
        shuffle(&r->rngs[layer], r->order + (size_t)layer * r->shape.n_expert, r->shape.n_expert);
    }
}

smoe_status routing_new(const trace_shape *shape, const routing_law *law, uint64_t seed,
                        routing **out, smoe_err *err)
{
    size_t n_layer = shape->n_layer, n_expert = shape->n_expert;
    routing *r = mem_calloc(1, sizeof *r);
    if (!r) {
        return err_nomem(err, "the routing", sizeof *r);
    }
    r->shape = *shape;
    r->reuse = law->reuse;
    r->weights = mem_calloc(n_expert, sizeof *r->weights);
    r->order = mem_calloc(n_layer * n_expert, sizeof *r->order);
    r->previous = mem_calloc(n_layer * shape->n_used, sizeof *r->previous);
    r->is_used = mem_calloc(n_expert, sizeof *r->is_used);
    r->rngs = mem_calloc(n_layer, sizeof *r->rngs);
    r->has_previous = mem_calloc(n_layer, sizeof *r->has_previous);
    if (!r->weights || !r->order || !r->previous || !r->is_used || !r->rngs || !r->has_previous) {
        routing_free(r);
        return err_nomem(err, "the routing", n_layer * n_expert * sizeof *r->order);
    }
    draw_orders(r, law, seed);
    *out = r;
    return SMOE_OK;
}

void routing_free(routing *r)
{
    if (!r) {
        return;
    }
    mem_free(r->weights);
    mem_free(r->order);
    mem_free(r->previous);
    mem_free(r->is_used);
    mem_free(r->rngs);
    mem_free(r->has_previous);
    mem_free(r);
}

/* One of the previous token's experts that this one has not chosen yet; false when none is left. */
static bool draw_previous(routing *r, uint32_t layer, uint16_t *expert)
{
    const uint16_t *previous = r->previous + (size_t)layer * r->shape.n_used;
    uint32_t n_left = 0;
    for (uint32_t i = 0; i < r->shape.n_used; i++) {
        n_left += !r->is_used[previous[i]];
    }
    if (!r->has_previous[layer] || n_left == 0) {
        return false;
    }
    uint32_t skip = (uint32_t)(rng_next(&r->rngs[layer]) % n_left);
    for (uint32_t i = 0;; i++) {
        if (!r->is_used[previous[i]] && skip-- == 0) {
            *expert = previous[i];
            return true;
        }
    }
}

static uint16_t draw_popular(routing *r, uint32_t layer)
{
    const uint16_t *order = r->order + (size_t)layer * r->shape.n_expert;
    double total = 0;
    uint32_t last = 0;
    for (uint32_t place = 0; place < r->shape.n_expert; place++) {
        total += r->is_used[order[place]] ? 0 : r->weights[place];
    }
    double at = rng_uniform(&r->rngs[layer]) * total;
    for (uint32_t place = 0; place < r->shape.n_expert; place++) {
        if (!r->is_used[order[place]]) {
            last = place; /* rounding may carry `at` past them all */
            at -= r->weights[place];
            if (at < 0) {
                break;
            }
        }
    }
    return order[last];
}

void routing_next(routing *r, uint32_t layer, uint16_t *experts)
{
    uint32_t n_used = r->shape.n_used;
    for (uint32_t i = 0; i < n_used; i++) {
        bool is_reuse = rng_uniform(&r->rngs[layer]) < r->reuse;
        if (!is_reuse || !draw_previous(r, layer, &experts[i])) {
            experts[i] = draw_popular(r, layer);
        }
        r->is_used[experts[i]] = 1;
    }
    for (uint32_t i = 0; i < n_used; i++) {
        r->is_used[experts[i]] = 0;
    }
    memcpy(r->previous + (size_t)layer * n_used, experts, n_used * sizeof *experts);
    r->has_previous[layer] = true;
}

smoe_status routing_trace(routing *r, uint32_t n_tokens, trace *t, smoe_err *err)
{
    for (uint32_t i = 0; i < n_tokens; i++) {
        TRY(trace_add_pass(t, 1, err));
        for (uint32_t layer = 0; layer < r->shape.n_layer; layer++) {
            routing_next(r, layer, trace_at(t, t->n_tokens - 1, layer));
        }
    }
    return SMOE_OK;
}
