/* sampler.c: see sampler.h. */
#include "engine/sampler.h"

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
    s->heap = mem_calloc(SAMPLER_MAX_TOP_K, sizeof *s->heap);
    if (!s->exempt || !s->seen || !s->heap) {
        sampler_fini(s);
        return err_nomem(err, "the sampler", n_vocab * 5ull);
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
    mem_free(s->heap);
    *s = (sampler){0};
}

/* Keskar et al. 2019: a positive logit is divided by the penalty, a negative one multiplied. */
static void penalise(sampler *s, float penalty, float *logits, const int32_t *stream,
                     size_t n_stream)
{
    if (penalty == 1.0f) {
        return;
    }
    if (++s->round == 0) { /* wrapped: forget all earlier rounds */
        for (uint32_t v = 0; v < s->n_vocab; v++) {
            s->seen[v] = 0;
        }
        s->round = 1;
    }
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
                     const int32_t *stream, size_t n_stream, rng *r)
{
    penalise(s, sampling->rep_penalty, logits, stream, n_stream);
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
    while (n_head < k && (n_head == 0 || head < (double)sampling->top_p * sum)) {
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
