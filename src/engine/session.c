/* session.c: one timeline of tokens: prefix reuse, prefill, generation. See smoe/engine.h.
 *
 * stream[0 .. n_stream) is everything so far: the last request's ids and what was generated after
 * them. stream[0 .. n_kv) has its keys and values in the cache; n_kv <= n_stream. A request keeps
 * the longest common prefix and recomputes the rest. Since every position's result is independent
 * of how it was computed (design A4), the answer is the one that a fresh engine gives. */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/engine_internal.h"
#include "engine/routed.h"
#include "engine/sampler.h"
#include "model/forward.h"

enum { PROGRESS_NS = 250 * 1000 * 1000 };

/* How far a request's prefill is: whole passes, and layers of the running one. */
typedef struct prefill_watch {
    const smoe_events *events;
    uint32_t n_total, n_done; /* tokens; n_total 0 = nothing to report */
    uint32_t n_pass, layer;
    uint64_t reported_ns;
} prefill_watch;

struct smoe_session {
    smoe_engine *engine;
    kv_cache kv;
    scratch scratch;
    forward_ctx forward;
    forward_times times;
    sampler sampler;
    rng rng;
    prefill_watch watch;
    uint64_t n_warmed; /* cache_stats.n_warmed when the last request ended */
    uint32_t max_suffix;
    uint8_t *is_eos;   /* [n_vocab] */
    /* [n_ctx + 1]: the last token may be emitted without entering the KV cache */
    int32_t *stream;
    uint32_t n_stream, n_kv;
};

static smoe_status mark_end_tokens(smoe_session *s, const smoe_session_params *params,
                                   smoe_err *err)
{
    const smoe_engine_info *info = &s->engine->info;
    const int32_t *ids = params->eos_ids ? params->eos_ids : info->eos_ids;
    size_t n = params->eos_ids ? params->n_eos_ids : info->n_eos_ids;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= info->n_vocab) {
            return err_set(err, SMOE_RANGE, "the end token %d is outside the vocabulary of %u",
                           ids[i], info->n_vocab);
        }
        s->is_eos[ids[i]] = 1;
    }
    return SMOE_OK;
}

static smoe_status init_compute(smoe_session *s, const smoe_session_params *params, smoe_err *err)
{
    smoe_engine *e = s->engine;
    const model_config *cfg = &e->scout.config;
    TRY(kv_cache_init(&s->kv, cfg, e->kv_type, e->info.n_ctx, err));
    TRY(scratch_init(&s->scratch, cfg, e->n_batch, e->info.n_ctx, e->info.n_threads, err));
    s->forward = (forward_ctx){
        .w = &e->weights,
        .gate = &e->vault.gate, .up = &e->vault.up, .down = &e->vault.down,
        .compute = {.k = e->kernels, .panel = e->panel_kernels, .pool = e->pool},
        .kv = &s->kv,
        .s = &s->scratch,
        .experts = e->experts.source,
        .n_spec = params->n_spec,
        .times = params->instrument ? &s->times : NULL,
    };
    forward_init(&s->forward);
    return sampler_init(&s->sampler, e->kernels, e->info.n_vocab, e->scout.penalty_exempt_ids,
                        e->scout.n_penalty_exempt_ids, err);
}

smoe_status smoe_session_new(smoe_engine *engine, const smoe_session_params *params,
                             smoe_session **out, smoe_err *err)
{
    smoe_status status;
    const smoe_engine_info *info = &engine->info;
    smoe_session *s = mem_calloc(1, sizeof *s);
    if (!s) {
        return err_nomem(err, "a session", sizeof *s);
    }
    s->engine = engine;
    s->rng = (rng){params->seed};
    s->max_suffix = params->max_suffix ? params->max_suffix : info->n_ctx;
    s->is_eos = mem_calloc(info->n_vocab, 1);
    s->stream = mem_calloc((size_t)info->n_ctx + 1, sizeof *s->stream);
    if (!s->is_eos || !s->stream) {
        CHECK(err_nomem(err, "a session", info->n_vocab + 4ull * info->n_ctx));
    }
    CHECK(mark_end_tokens(s, params, err));
    CHECK(init_compute(s, params, err));
    *out = s;
    return SMOE_OK;
out:
    smoe_session_free(s);
    return status;
}

void smoe_session_free(smoe_session *s)
{
    if (!s) {
        return;
    }
    sampler_fini(&s->sampler);
    scratch_fini(&s->scratch);
    kv_cache_fini(&s->kv);
    mem_free(s->is_eos);
    mem_free(s->stream);
    mem_free(s);
}

void smoe_session_reset(smoe_session *s)
{
    s->n_stream = s->n_kv = 0;
}

void smoe_session_on_routed(smoe_session *s, smoe_routed *routed, void *ctx)
{
    s->forward.routed = routed;
    s->forward.routed_ctx = ctx;
}

static smoe_status check_ids(const smoe_session *s, const int32_t *ids, size_t n_ids, smoe_err *err)
{
    const smoe_engine_info *info = &s->engine->info;
    if (n_ids == 0) {
        return err_set(err, SMOE_EMPTY, "the request has no ids");
    }
    for (size_t i = 0; i < n_ids; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= info->n_vocab) {
            return err_set(err, SMOE_RANGE, "id %d at place %zu is outside the vocabulary of %u",
                           ids[i], i, info->n_vocab);
        }
    }
    if (n_ids > info->n_ctx) {
        return err_set(err, SMOE_OVERFLOW,
                       "%zu ids do not fit the context of %u; drop earlier turns, or "
                       "start the engine with a larger --ctx",
                       n_ids, info->n_ctx);
    }
    return SMOE_OK;
}

/* Ids of the request that the KV cache already holds. The last id is always run again: its logits
 * are what generation starts from. */
static uint32_t common_prefix(const smoe_session *s, const smoe_request *r)
{
    uint32_t n = 0;
    while (n < s->n_kv && n + 1 < r->n_ids && s->stream[n] == r->ids[n]) {
        n++;
    }
    return n;
}

static smoe_status check_request(const smoe_session *s, const smoe_request *r, uint32_t n_cached,
                                 smoe_err *err)
{
    uint32_t n_ctx = s->engine->info.n_ctx;
    if (r->max_tokens < 1 || r->max_tokens > n_ctx) {
        return err_set(err, SMOE_RANGE, "max_tokens is %u; expected is 1 to the context, %u",
                       r->max_tokens, n_ctx);
    }
    if (r->n_top_logprobs > SMOE_MAX_TOP_LOGPROBS) {
        return err_set(err, SMOE_RANGE, "log-probabilities of %u tokens are asked for; the most "
                       "that are given is %d", r->n_top_logprobs, SMOE_MAX_TOP_LOGPROBS);
    }
    if (r->n_ids - n_cached > s->max_suffix) {
        return err_set(err, SMOE_SUFFIX, "%zu new ids are more than --max-suffix %u",
                       r->n_ids - n_cached, s->max_suffix);
    }
    return SMOE_OK;
}

static void report(prefill_watch *w, uint32_t n_done)
{
    w->reported_ns = clock_ns();
    w->events->progress(w->events->ctx, n_done, w->n_total);
}

/* Before each layer: reports progress, but not more often than a person can read, and passes on the
 * wish to stop. */
static bool before_layer(void *ctx)
{
    smoe_session *s = ctx;
    prefill_watch *w = &s->watch;
    const smoe_events *ev = w->events;
    if (w->n_total && ev->progress && clock_ns() - w->reported_ns >= PROGRESS_NS) {
        uint64_t layers_done = (uint64_t)w->n_pass * w->layer / s->engine->info.n_layer;
        report(w, w->n_done + (uint32_t)layers_done);
    }
    w->layer++;
    return ev->cancelled && ev->cancelled(ev->ctx);
}

/* Runs stream[n_kv .. n_stream) in batches. What is complete stays valid if a later batch fails.
 * Reports progress as time passes, and after each of several batches. */
static smoe_status prefill(smoe_session *s, uint32_t *n_last, smoe_err *err)
{
    prefill_watch *w = &s->watch;
    bool many = s->n_stream - s->n_kv > s->scratch.n_batch;
    w->n_total = s->n_stream - s->n_kv;
    w->reported_ns = clock_ns();
    while (w->n_done < w->n_total) {
        uint32_t left = w->n_total - w->n_done;
        w->n_pass = left < s->scratch.n_batch ? left : s->scratch.n_batch;
        w->layer = 0;
        if (many && w->events->progress) {
            report(w, w->n_done);
        }
        TRY(forward(&s->forward, s->stream + s->n_kv, w->n_pass, s->n_kv, err));
        s->n_kv += w->n_pass;
        w->n_done += w->n_pass;
        *n_last = w->n_pass;
    }
    if (many && w->events->progress) {
        report(w, w->n_done);
    }
    w->n_total = 0;
    return SMOE_OK;
}

/* Emits tokens from the logits of position n_kv - 1 on (the n_last-th row of the last batch). */
static smoe_status decode(smoe_session *s, const smoe_request *r, const smoe_events *ev,
                          uint32_t n_last, rng *random, smoe_result *result, smoe_err *err)
{
    uint32_t n_ctx = s->engine->info.n_ctx;
    result->fin = SMOE_FIN_LENGTH;
    for (uint32_t row = n_last - 1;; row = 0) {
        const float *logits;
        TRY(forward_logits(&s->forward, row, &logits, err));
        if (r->has_logprobs) {
            sampler_observe(&s->sampler, logits, r->n_top_logprobs);
        }
        int32_t id = sampler_next(&s->sampler, &r->sampling, s->scratch.logits, s->stream,
                                  s->n_stream, result->n_generated, random);
        if (s->is_eos[id]) {
            result->fin = SMOE_FIN_STOP;
            return SMOE_OK;
        }
        s->stream[s->n_stream++] = id;
        result->n_generated++;
        if (ev->token && !ev->token(ev->ctx, id)) {
            return err_set(err, SMOE_CANCELLED, "the request was cancelled");
        }
        if (r->has_logprobs && ev->logprobs) {
            ev->logprobs(ev->ctx, sampler_logprobs(&s->sampler, id));
        }
        if (result->n_generated == r->max_tokens || s->n_stream > n_ctx) {
            return SMOE_OK;
        }
        TRY(forward(&s->forward, &s->stream[s->n_kv], 1, s->n_kv, err));
        s->n_kv++;
    }
}

static void count(smoe_session *s, const cache_stats *before, smoe_result *r)
{
    const cache_stats *now = s->engine->experts.stats;
    const forward_times *t = &s->times;
    r->n_expert_acquires = now->n_acquires - before->n_acquires;
    r->n_expert_hits = now->n_hits - before->n_hits;
    r->n_evictions = now->n_evictions - before->n_evictions;
    r->bytes_read = now->bytes_read - before->bytes_read;
    r->read_ns = now->read_ns - before->read_ns;
    r->n_guessed = now->n_guessed - before->n_guessed;
    r->n_guesses_used = now->n_guesses_used - before->n_guesses_used;
    r->n_guesses_wasted = now->n_guesses_wasted - before->n_guesses_wasted;
    r->n_prewarmed = now->n_warmed - s->n_warmed;
    r->n_prewarmed_used = now->n_warmed_used - before->n_warmed_used;
    r->n_prewarmed_wasted = now->n_warmed_wasted - before->n_warmed_wasted;
    s->n_warmed = now->n_warmed;
    if (s->forward.times) {
        uint64_t wait_ns = now->wait_ns - before->wait_ns;
        r->times = (smoe_times){t->attention_ns, t->router_ns,
                                t->ffn_ns - t->router_ns - wait_ns, wait_ns, t->head_ns};
    }
}

smoe_status smoe_session_generate(smoe_session *s, const smoe_request *r, const smoe_events *events,
                                  smoe_result *result, smoe_err *err)
{
    static const smoe_events no_events = {0};
    const smoe_events *ev = events ? events : &no_events;
    *result = (smoe_result){.n_prompt = (uint32_t)r->n_ids};
    TRY(check_ids(s, r->ids, r->n_ids, err));
    uint32_t n_cached = common_prefix(s, r);
    TRY(check_request(s, r, n_cached, err));

    result->n_cached = n_cached;
    memcpy(s->stream + n_cached, r->ids + n_cached, (r->n_ids - n_cached) * sizeof *s->stream);
    s->n_kv = n_cached;
    s->n_stream = (uint32_t)r->n_ids;
    s->watch = (prefill_watch){.events = ev};
    s->forward.cancelled = before_layer;
    s->forward.cancelled_ctx = s;
    rng own = {r->seed};
    cache_stats before = *s->engine->experts.stats;
    s->times = (forward_times){0};
    uint64_t start = clock_ns();
    uint32_t n_last = 0;
    smoe_status status = prefill(s, &n_last, err);
    uint64_t prefilled = clock_ns();
    if (status == SMOE_OK) {
        uint64_t n_allocs = mem_alloc_count();
        status = decode(s, r, ev, n_last, r->has_seed ? &own : &s->rng, result, err);
        result->n_decode_allocs = mem_alloc_count() - n_allocs;
    }
    result->prefill_ns = prefilled - start;
    result->decode_ns = clock_ns() - prefilled;
    count(s, &before, result);
    if (status == SMOE_CANCELLED) {
        result->fin = SMOE_FIN_CANCEL;
        return SMOE_OK;
    }
    return status;
}

int smoe_session_idle(smoe_session *s)
{
    return prewarm_step(&s->engine->prewarm, &s->engine->experts);
}

smoe_status smoe_session_logits(smoe_session *s, const int32_t *ids, size_t n_ids,
                                smoe_logits_row *row, void *ctx, smoe_err *err)
{
    TRY(check_ids(s, ids, n_ids, err));
    smoe_session_reset(s);
    s->forward.cancelled = NULL;
    memcpy(s->stream, ids, n_ids * sizeof *ids);
    s->n_stream = (uint32_t)n_ids;
    while (s->n_kv < n_ids) {
        uint32_t left = (uint32_t)n_ids - s->n_kv;
        uint32_t n = left < s->scratch.n_batch ? left : s->scratch.n_batch;
        TRY(forward(&s->forward, ids + s->n_kv, n, s->n_kv, err));
        for (uint32_t i = 0; i < n; i++) {
            const float *logits;
            TRY(forward_logits(&s->forward, i, &logits, err));
            TRY(row(ctx, s->n_kv + i, logits, err));
        }
        s->n_kv += n;
    }
    return SMOE_OK;
}
