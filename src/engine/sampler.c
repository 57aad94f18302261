/* sampler.c: see sampler.h. */
#include "engine/sampler.h"

#include <string.h>

#include "base/dmath.h"
#include "base/err.h"
#include "base/mem.h"

static const float GREEDY_BELOW = 1e-4f;

smoe_sampling smoe_sampling_defaults(void)
{
    return (smoe_sampling){.temperature = 0.6f, .top_p = 0.95f, .top_k = 50, .rep_penalty = 1.1f};
}

smoe_status sampler_init(sampler *s, const kernels *k, uint32_t n_vocab, const int32_t *exempt_ids,
                         size_t n_exempt_ids, smoe_err *err)
{
    *s = (sampler){.k = k, .n_vocab = n_vocab};
    s->exempt = mem_calloc(n_vocab, 1);
    s->seen = mem_calloc(n_vocab, sizeof *s->seen);
    s->n_seen = mem_calloc(n_vocab, sizeof *s->n_seen);
    s->raw = mem_calloc(n_vocab, sizeof *s->raw);
    s->heap = mem_calloc(SAMPLER_MAX_TOP_K, sizeof *s->heap);
    if (!s->exempt || !s->seen || !s->n_seen || !s->raw || !s->heap) {
        sampler_fini(s);
        return err_nomem(err, "the sampler", n_vocab * 13ull);
    }
    for (size_t i = 0; i < n_exempt_ids; i++) {
        if (exempt_ids[i] >= 0 && (uint32_t)exempt_ids[i] < n_vocab) {
            s->exempt[exempt_ids[i]] = 1;
        }
    }
    return SMOE_OK;
}

void sampler_fini(sampler *s)
{
    mem_free(s->exempt);
    mem_free(s->seen);
    mem_free(s->n_seen);
    mem_free(s->raw);
    mem_free(s->heap);
    *s = (sampler){0};
}

static void begin_round(sampler *s)
{
    if (++s->round == 0) { /* wrapped: forget all earlier rounds */
        for (uint32_t v = 0; v < s->n_vocab; v++) {
            s->seen[v] = 0;
        }
        s->round = 1;
    }
}

/* Keskar et al. 2019: a positive logit is divided by the penalty, a negative one multiplied. */
static void penalise_repetition(sampler *s, float penalty, float *logits, const int32_t *stream,
                     size_t n_stream)
{
    if (penalty == 1.0f) {
        return;
    }
    begin_round(s);
    size_t from = n_stream > SAMPLER_WINDOW ? n_stream - SAMPLER_WINDOW : 0;
    for (size_t i = from; i < n_stream; i++) {
        int32_t id = stream[i];
        if (s->exempt[id] || s->seen[id] == s->round) {
            continue;
        }
        s->seen[id] = s->round;
        logits[id] = logits[id] > 0 ? logits[id] / penalty : logits[id] * penalty;
    }
}

/* As OpenAI documents them: logit - count * frequency - (count > 0) * presence, where count is how
 * often the token was generated before. */
static void penalise_frequency(sampler *s, const smoe_sampling *sampling, float *logits,
                               const int32_t *generated, size_t n_generated)
{
    if (sampling->presence_penalty == 0 && sampling->frequency_penalty == 0) {
        return;
    }
    begin_round(s);
    for (size_t i = 0; i < n_generated; i++) {
        int32_t id = generated[i];
        s->n_seen[id] = s->seen[id] == s->round ? s->n_seen[id] + 1 : 1;
        s->seen[id] = s->round;
    }
    for (size_t i = 0; i < n_generated; i++) {
        int32_t id = generated[i];
        if (s->n_seen[id] > 0) {
            logits[id] = logits[id] - (float)s->n_seen[id] * sampling->frequency_penalty -
                         sampling->presence_penalty;
            s->n_seen[id] = 0;
        }
    }
}

static int32_t argmax(const float *logits, uint32_t n_vocab)
{
    uint32_t best = 0;
    for (uint32_t v = 1; v < n_vocab; v++) {
        best = logits[v] > logits[best] ? v : best;
    }
    return (int32_t)best;
}

/* Less likely first, of equals the higher id first: the root of the heap is the one to drop. */
static bool worse(candidate a, candidate b)
{
    return a.p < b.p || (a.p == b.p && a.id > b.id);
}

static void sift_down(candidate *heap, size_t n, size_t i)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n) {
            return;
        }
        if (child + 1 < n && worse(heap[child + 1], heap[child])) {
            child++;
        }
        if (!worse(heap[child], heap[i])) {
            return;
        }
        candidate swap = heap[i];
        heap[i] = heap[child];
        heap[child] = swap;
        i = child;
    }
}

/* The k most likely of p [n_vocab], most likely first, in s->heap. */
static void top_k(sampler *s, const float *p, size_t k)
{
    candidate *heap = s->heap;
    for (size_t v = 0; v < k; v++) {
        heap[v] = (candidate){p[v], (int32_t)v};
    }
    for (size_t i = k / 2; i-- > 0;) {
        sift_down(heap, k, i);
    }
    for (size_t v = k; v < s->n_vocab; v++) {
        candidate c = {p[v], (int32_t)v};
        if (worse(heap[0], c)) {
            heap[0] = c;
            sift_down(heap, k, 0);
        }
    }
    for (size_t n = k; n > 1; n--) { /* heap sort: the worst goes to the end */
        candidate swap = heap[0];
        heap[0] = heap[n - 1];
        heap[n - 1] = swap;
        sift_down(heap, n - 1, 0);
    }
}

int32_t sampler_next(sampler *s, const smoe_sampling *sampling, float *logits,
                     const int32_t *stream, size_t n_stream, size_t n_generated, rng *r)
{
    penalise_repetition(s, sampling->rep_penalty, logits, stream, n_stream);
    if (n_generated > 0) {
        penalise_frequency(s, sampling, logits, stream + n_stream - n_generated, n_generated);
    }
    if (sampling->temperature < GREEDY_BELOW) {
        return argmax(logits, s->n_vocab);
    }
    float max = s->k->vec_max(logits, s->n_vocab);
    for (uint32_t v = 0; v < s->n_vocab; v++) { /* subtract first: exact at the maximum */
        logits[v] = (logits[v] - max) / sampling->temperature;
    }
    float sum = s->k->vec_exp_sub_max(logits, s->n_vocab, 0);
    size_t k = sampling->top_k < SAMPLER_MAX_TOP_K ? sampling->top_k : SAMPLER_MAX_TOP_K;
    k = k < s->n_vocab ? k : s->n_vocab;
    top_k(s, logits, k);
    double head = 0;
    size_t n_head = 0;
    float least = sampling->min_p * s->heap[0].p;
    while (n_head < k && (n_head == 0 || (head < (double)sampling->top_p * sum &&
                                          s->heap[n_head].p >= least))) {
        head += s->heap[n_head++].p;
    }
    double draw = rng_uniform(r) * head;
    for (size_t i = 0; i + 1 < n_head; i++) {
        draw -= s->heap[i].p;
        if (draw < 0) {
            return s->heap[i].id;
        }
    }
    return s->heap[n_head - 1].id;
}

static const double LEAST_LOGPROB = -9999;

static smoe_logprob logprob_of(const sampler *s, int32_t id)
{
    double p = (double)s->raw[id] - s->log_sum;
    return (smoe_logprob){id, p > LEAST_LOGPROB ? p : LEAST_LOGPROB};
}

void sampler_observe(sampler *s, const float *logits, uint32_t n_top)
{
    size_t n_bytes = s->n_vocab * sizeof *s->raw;
    memcpy(s->raw, logits, n_bytes);
    float max = s->k->vec_max(logits, s->n_vocab);
    float sum = s->k->vec_exp_sub_max(s->raw, s->n_vocab, max);
    s->log_sum = (double)max + dmath_log((double)sum);
    memcpy(s->raw, logits, n_bytes);
    n_top = n_top < SMOE_MAX_TOP_LOGPROBS ? n_top : SMOE_MAX_TOP_LOGPROBS;
    n_top = n_top < s->n_vocab ? n_top : s->n_vocab;
    s->seen_top.n_top = n_top;
    if (n_top > 0) {
        top_k(s, logits, n_top);
    }
    for (uint32_t i = 0; i < n_top; i++) {
        s->seen_top.top[i] = logprob_of(s, s->heap[i].id);
    }
}

const smoe_logprobs *sampler_logprobs(sampler *s, int32_t id)
{
    s->seen_top.chosen = logprob_of(s, id);
    return &s->seen_top;
}
