/* chooser.c: see chooser.h. */
#include "bench/chooser.h"

#include "base/mem.h"

enum { SEED = 1 };

smoe_status chooser_init(chooser *c, const trace_shape *shape, const routing_law *law,
                         const trace *replay, smoe_err *err)
{
    *c = (chooser){.shape = *shape, .replay = replay};
    const trace_shape *has = replay ? &replay->shape : shape;
    if (has->n_layer != shape->n_layer || has->n_expert != shape->n_expert ||
        has->n_used != shape->n_used) {
        return err_set(err, SMOE_MISMATCH,
                       "the trace is of %u layers with %u of %u experts, the model has %u with %u "
                       "of %u",
                       has->n_layer, has->n_used, has->n_expert, shape->n_layer, shape->n_used,
                       shape->n_expert);
    }
    c->choice = mem_calloc(shape->n_used, sizeof *c->choice);
    if (!c->choice) {
        return err_nomem(err, "a choice", shape->n_used * sizeof *c->choice);
    }
    return law ? routing_new(shape, law, SEED, &c->law, err) : SMOE_OK;
}

void chooser_fini(chooser *c)
{
    routing_free(c->law);
    mem_free(c->choice);
    *c = (chooser){0};
}

static const uint16_t *choose(chooser *c, uint32_t i)
{
    if (c->replay) {
        return trace_at(c->replay, (c->token + i) % c->replay->n_tokens, c->layer);
    }
    routing_next(c->law, c->layer, c->choice);
    return c->choice;
}

static void keep(chooser *c, uint32_t i, const uint32_t *experts)
{
    uint16_t *to = trace_at(c->record, c->record->n_tokens - c->n_pass + i, c->layer);
    for (uint32_t k = 0; k < c->shape.n_used; k++) {
        to[k] = (uint16_t)experts[k];
    }
}

void chooser_on_routed(void *ctx, uint32_t layer, uint32_t *experts, uint32_t n_tokens)
{
    chooser *c = ctx;
    (void)layer; /* layers without experts do not count in a trace */
    if (c->layer == 0) {
        c->n_pass = n_tokens;
        if (c->record && c->status == SMOE_OK) {
            c->status = trace_add_pass(c->record, n_tokens, &c->err);
        }
    }
    for (uint32_t i = 0; i < n_tokens; i++, experts += c->shape.n_used) {
        const uint16_t *other = c->law || c->replay ? choose(c, i) : NULL;
        for (uint32_t k = 0; other && k < c->shape.n_used; k++) {
            experts[k] = other[k];
        }
        if (c->record && c->status == SMOE_OK) {
            keep(c, i, experts);
        }
    }
    if (++c->layer == c->shape.n_layer) {
        c->layer = 0;
        c->token += n_tokens;
    }
}
