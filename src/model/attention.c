/* attention.c: see attention.h. Vaswani et al. 2017; grouped queries: Ainslie et al. 2023; blocks
 * merged by their maxima: Milakov and Gimelshein 2018, Dao et al. 2022.
 *
 * The unit of work is a tile: some query positions, times the heads that share a kv head. Its rows
 * share every load of a key or value. */
#include "model/attention.h"

#include <math.h>
#include <string.h>

enum { TILE_ROWS = 32 }; /* enough to share a load, few enough for the L2 cache */

/* Query positions of a tile: a power of two, so that no tile crosses the end of a block. */
static uint32_t tile_tokens(uint32_t n_group)
{
    uint32_t n = 1;
    while (2 * n * n_group <= TILE_ROWS) {
        n *= 2;
    }
    return n;
}

/* The queries of a tile. */
typedef struct queries {
    float *x;        /* [rows][n_embd_head], scaled */
    int16_t *levels; /* of x, for q8_0 */
    float *scales;   /* [rows] of the levels */
} queries;

/* What the rows of a tile have seen of one block, or of many merged ones. */
typedef struct partial {
    float *max, *sum; /* [rows] */
    float *out;       /* [rows][n_embd_head], scaled to max and not yet divided by sum */
} partial;

/* Of one thread: all that a tile needs. */
typedef struct workspace {
    queries q;
    partial all, next;
    float *scores; /* [rows][ATTENTION_BLOCK] */
} workspace;

/* Reserves n_bytes, a multiple of 4; base NULL only measures. */
static void *take(uint8_t *base, size_t *used, size_t n_bytes)
{
    void *p = base ? base + *used : NULL;
    *used += n_bytes;
    return p;
}

static queries take_queries(uint8_t *base, size_t *used, size_t n_rows, uint32_t d)
{
    queries q;
    q.x = take(base, used, n_rows * d * sizeof *q.x);
    q.levels = take(base, used, n_rows * d * sizeof *q.levels); /* d is even */
    q.scales = take(base, used, n_rows * sizeof *q.scales);
    return q;
}

static partial take_partial(uint8_t *base, size_t *used, size_t n_rows, uint32_t d)
{
    partial p;
    p.max = take(base, used, n_rows * sizeof *p.max);
    p.sum = take(base, used, n_rows * sizeof *p.sum);
    p.out = take(base, used, n_rows * d * sizeof *p.out);
    return p;
}

static workspace take_workspace(uint8_t *base, size_t *used, uint32_t n_group, uint32_t d)
{
    size_t n_rows = (size_t)tile_tokens(n_group) * n_group;
    workspace w;
    w.q = take_queries(base, used, n_rows, d);
    w.all = take_partial(base, used, n_rows, d);
    w.next = take_partial(base, used, n_rows, d);
    w.scores = take(base, used, n_rows * ATTENTION_BLOCK * sizeof *w.scores);
    return w;
}

size_t attention_thread_bytes(const model_config *cfg)
{
    size_t used = 0;
    take_workspace(NULL, &used, cfg->n_head / cfg->n_head_kv, cfg->n_embd_head);
    return used;
}

size_t attention_token_bytes(const model_config *cfg, uint32_t n_ctx)
{
    size_t n_blocks = (n_ctx + ATTENTION_BLOCK - 1) / ATTENTION_BLOCK, used = 0;
    take_queries(NULL, &used, cfg->n_head, cfg->n_embd_head);
    take_partial(NULL, &used, n_blocks * cfg->n_head, cfg->n_embd_head);
    return used;
}

void attention_store(const compute *c, kv_cache *kv, uint32_t layer, uint32_t pos0, uint32_t n,
                     const float *k, const float *v)
{
    for (uint32_t t = 0; t < n; t++) {
        for (uint32_t h = 0; h < kv->n_head_kv; h++) {
            size_t from = ((size_t)t * kv->n_head_kv + h) * kv->n_embd_head;
            kv_cache_store(kv, c->k, layer, h, pos0 + t, k + from, v + from);
        }
    }
}

typedef struct attention_job {
    const compute *c;
    const kv_cache *kv;
    const attention_scratch *scratch;
    size_t thread_bytes;
    uint32_t layer, n_group, pos0, n;
    uint32_t n_blocks;                    /* one token: of ATTENTION_BLOCK */
    uint32_t tokens, first_tile, n_tiles; /* many: query positions of a tile; tiles */
    const float *q;
    float *out;
} attention_job;

/* Rows [to, to + n) of q from x [n][n_embd_head]. */
static void set_queries(const attention_job *job, const queries *q, size_t to, size_t n,
                        const float *x)
{
    uint32_t d = job->kv->n_embd_head;
    float *scaled = q->x + to * d;
    memcpy(scaled, x, n * d * sizeof *x);
    job->c->k->vec_scale(scaled, 1.0f / sqrtf((float)d), (int64_t)(n * d));
    for (size_t r = 0; job->kv->type == DTYPE_Q8_0 && r < n; r++) {
        job->c->panel->attn_q8_quantize(scaled + r * d, d, q->levels + (to + r) * d,
                                        q->scales + to + r);
    }
}

/* Scores of n_rows queries over positions [first, first + n). */
static void block_scores(const attention_job *job, const queries *q, uint32_t n_rows,
                         uint32_t kv_head, uint32_t first, uint32_t n, float *scores)
{
    const kv_cache *kv = job->kv;
    const uint8_t *keys = kv->k + kv_cache_at(kv, job->layer, kv_head, first);
    int64_t d = kv->n_embd_head, n_panels = (n + KV_PANEL - 1) / KV_PANEL;
    if (kv->type == DTYPE_Q8_0) {
        attn_q8_query x = {q->levels, q->scales};
        job->c->panel->attn_q8_scores(keys, x, n_rows, d, n_panels, scores, ATTENTION_BLOCK);
    } else {
        job->c->k->attn_scores(kv->type, keys, q->x, n_rows, d, n_panels, scores, ATTENTION_BLOCK);
    }
}

/* out = the values weighted by p, for n_tokens times n_group rows: the first token sees n_first of
 * the block's positions, each further one more, none more than n_last. */
static void plain_values(const attention_job *job, const uint8_t *values, uint32_t n_tokens,
                         uint32_t n_first, uint32_t n_last, const float *p, float *out)
{
    const kv_cache *kv = job->kv;
    uint32_t d = kv->n_embd_head, n_group = job->n_group;
    memset(out, 0, (size_t)n_tokens * n_group * d * sizeof *out);
    job->c->k->attn_values(kv->type, values, p, ATTENTION_BLOCK, n_tokens * n_group, d, n_first,
                           out);
    for (uint32_t t = 1; t < n_tokens && n_first < n_last; t++) {
        size_t row = (size_t)t * n_group;
        job->c->k->attn_values(kv->type, values + n_first * kv->row_bytes,
                               p + row * ATTENTION_BLOCK + n_first, ATTENTION_BLOCK, n_group, d, t,
                               out + row * d);
    }
}

/* The same over q8_0. Rounding there depends on the positions that a token sees, so only tokens
 * that see the same share a call. */
static void q8_values(const attention_job *job, const uint8_t *values, uint32_t n_tokens,
                      uint32_t n_first, uint32_t n_last, const float *p, float *out)
{
    uint32_t d = job->kv->n_embd_head, n_group = job->n_group;
    uint32_t n_same = n_first == n_last ? n_tokens : 1;
    for (uint32_t t = 0; t < n_tokens; t += n_same) {
        size_t row = (size_t)t * n_group;
        uint32_t n = n_first + t < n_last ? n_first + t : n_last;
        job->c->panel->attn_q8_values(values, p + row * ATTENTION_BLOCK, ATTENTION_BLOCK,
                                      n_same * n_group, d, n, out + row * d);
    }
}

/* The block of positions that starts at `first`, for queries at pos .. pos + n_tokens - 1, of which
 * the first sees at least one of the block's positions. */
static void one_block(const attention_job *job, const queries *q, uint32_t kv_head, uint32_t pos,
                      uint32_t n_tokens, uint32_t first, float *scores, partial p)
{
    const kernels *k = job->c->k;
    const uint8_t *values = job->kv->v + kv_cache_at(job->kv, job->layer, kv_head, first);
    uint32_t n_group = job->n_group, n_rows = n_tokens * n_group;
    uint32_t end = pos + n_tokens - first, n_last = end < ATTENTION_BLOCK ? end : ATTENTION_BLOCK;
    uint32_t n_first = pos + 1 - first < ATTENTION_BLOCK ? pos + 1 - first : ATTENTION_BLOCK;
    block_scores(job, q, n_rows, kv_head, first, n_last, scores);
    for (uint32_t r = 0; r < n_rows; r++) {
        uint32_t seen = n_first + r / n_group, n = seen < n_last ? seen : n_last;
        p.max[r] = k->vec_max(scores + (size_t)r * ATTENTION_BLOCK, n);
    }
    for (uint32_t r = 0; r < n_rows; r++) { /* a loop of its own: no row waits for its maximum */
        uint32_t seen = n_first + r / n_group, n = seen < n_last ? seen : n_last;
        p.sum[r] = k->vec_exp_sub_max(scores + (size_t)r * ATTENTION_BLOCK, n, p.max[r]);
    }
    (job->kv->type == DTYPE_Q8_0 ? q8_values : plain_values)(job, values, n_tokens, n_first, n_last,
                                                             scores, p.out);
}

/* Row `into` of a, and row `next` of b, which is the next block: together in a. */
static void merge(const kernels *k, partial a, size_t into, partial b, size_t next, uint32_t d)
{
    float max = b.max[next] > a.max[into] ? b.max[next] : a.max[into];
    float keep = kernel_expf(a.max[into] - max), add = kernel_expf(b.max[next] - max);
    a.max[into] = max;
    a.sum[into] = fmaf(b.sum[next], add, a.sum[into] * keep);
    k->vec_scale(a.out + into * d, keep, d);
    k->vec_mad_f32(a.out + into * d, b.out + next * d, add, d);
}

static void finish(const kernels *k, partial p, size_t row, uint32_t d, float *out)
{
    memcpy(out, p.out + row * d, d * sizeof *out);
    k->vec_scale(out, 1.0f / p.sum[row], d);
}

/* Many tokens: one item is a tile, all its blocks in turn. */
static void tile_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const attention_job *job = ctx;
    const kernels *k = job->c->k;
    uint32_t d = job->kv->n_embd_head, n_group = job->n_group;
    size_t used = 0, token_len = (size_t)job->kv->n_head_kv * n_group * d;
    workspace w =
        take_workspace(job->scratch->threads + thread * job->thread_bytes, &used, n_group, d);
    for (size_t i = begin; i < end; i++) {
        uint32_t kv_head = (uint32_t)(i / job->n_tiles);
        uint32_t tile = job->first_tile + (uint32_t)(i % job->n_tiles);
        uint32_t pos = tile * job->tokens, pos_end = pos + job->tokens;
        pos = pos > job->pos0 ? pos : job->pos0;
        pos_end = pos_end < job->pos0 + job->n ? pos_end : job->pos0 + job->n;
        size_t at = (pos - job->pos0) * token_len + (size_t)kv_head * n_group * d;
        for (uint32_t t = 0; t < pos_end - pos; t++) {
            set_queries(job, &w.q, (size_t)t * n_group, n_group, job->q + at + t * token_len);
        }
        for (uint32_t first = 0; first < pos_end; first += ATTENTION_BLOCK) {
            one_block(job, &w.q, kv_head, pos, pos_end - pos, first, w.scores,
                      first == 0 ? w.all : w.next);
            for (size_t r = 0; first > 0 && r < (size_t)(pos_end - pos) * n_group; r++) {
                merge(k, w.all, r, w.next, r, d);
            }
        }
        for (uint32_t r = 0; r < (pos_end - pos) * n_group; r++) {
            finish(k, w.all, r, d, job->out + at + r / n_group * token_len + r % n_group * d);
        }
    }
}

static void many_tokens(attention_job *job)
{
    job->tokens = tile_tokens(job->n_group);
    job->first_tile = job->pos0 / job->tokens;
    job->n_tiles = (job->pos0 + job->n - 1) / job->tokens + 1 - job->first_tile;
    pool_for(job->c->pool, (size_t)job->kv->n_head_kv * job->n_tiles, 1, tile_range, job);
}

/* One token: the heads of kv head h are rows [h * n_group, ..) of its queries; block b of them is
 * rows [(h * n_blocks + b) * n_group, ..) of its partials. */
typedef struct token {
    queries q;
    partial blocks;
} token;

static token token_of(const attention_job *job)
{
    uint32_t n_head = job->kv->n_head_kv * job->n_group, d = job->kv->n_embd_head;
    size_t used = 0;
    token t;
    t.q = take_queries(job->scratch->token, &used, n_head, d);
    t.blocks = take_partial(job->scratch->token, &used, (size_t)n_head * job->n_blocks, d);
    return t;
}

/* One item is a kv head and a block. */
static void block_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const attention_job *job = ctx;
    uint32_t d = job->kv->n_embd_head, n_group = job->n_group;
    token t = token_of(job);
    size_t used = 0;
    workspace w =
        take_workspace(job->scratch->threads + thread * job->thread_bytes, &used, n_group, d);
    for (size_t i = begin; i < end; i++) {
        uint32_t kv_head = (uint32_t)(i / job->n_blocks), block = (uint32_t)(i % job->n_blocks);
        size_t row = (size_t)kv_head * n_group, to = i * n_group;
        queries q = {t.q.x + row * d, t.q.levels + row * d, t.q.scales + row};
        partial p = {t.blocks.max + to, t.blocks.sum + to, t.blocks.out + to * d};
        one_block(job, &q, kv_head, job->pos0, 1, block * ATTENTION_BLOCK, w.scores, p);
    }
}

/* One item is a kv head. */
static void merge_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const attention_job *job = ctx;
    const kernels *k = job->c->k;
    uint32_t d = job->kv->n_embd_head, n_group = job->n_group;
    token t = token_of(job);
    (void)thread;
    for (size_t h = begin; h < end; h++) {
        for (size_t g = 0; g < n_group; g++) {
            size_t into = h * job->n_blocks * n_group + g;
            for (size_t b = 1; b < job->n_blocks; b++) {
                merge(k, t.blocks, into, t.blocks, into + b * n_group, d);
            }
            finish(k, t.blocks, into, d, job->out + (h * n_group + g) * d);
        }
    }
}

static void one_token(attention_job *job)
{
    uint32_t n_head_kv = job->kv->n_head_kv;
    token t;
    job->n_blocks = job->pos0 / ATTENTION_BLOCK + 1;
    t = token_of(job);
    set_queries(job, &t.q, 0, (size_t)n_head_kv * job->n_group, job->q);
    pool_for(job->c->pool, (size_t)n_head_kv * job->n_blocks, 1, block_range, job);
    pool_for(job->c->pool, n_head_kv, 8 / job->n_blocks + 1, merge_range, job);
}

void attention(const compute *c, const kv_cache *kv, uint32_t layer, const model_config *cfg,
               uint32_t pos0, uint32_t n, const float *q, const attention_scratch *scratch,
               float *out)
{
    attention_job job = {.c = c, .kv = kv, .scratch = scratch,
                         .thread_bytes = attention_thread_bytes(cfg), .layer = layer,
                         .n_group = cfg->n_head / cfg->n_head_kv, .pos0 = pos0, .n = n, .q = q,
                         .out = out};
    if (n > 1) {
        many_tokens(&job);
    } else {
        one_token(&job);
    }
}
