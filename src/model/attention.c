/* attention.c: see attention.h. Vaswani et al. 2017; grouped queries: Ainslie et al. 2023; blocks
 * merged by their maxima: Milakov and Gimelshein 2018, Dao et al. 2022. */
#include "model/attention.h"

#include <math.h>
#include <string.h>

static size_t part_bytes(uint32_t n_embd_head)
{
    return sizeof(attention_part) + n_embd_head * sizeof(float);
}

/* Of one thread: a group's scores over one block, their values, the merged part and the next. */
size_t attention_thread_bytes(const model_config *cfg)
{
    size_t n_group = cfg->n_head / cfg->n_head_kv;
    return n_group * (ATTENTION_BLOCK + cfg->n_embd_head) * sizeof(float) +
           2 * n_group * part_bytes(cfg->n_embd_head);
}

size_t attention_parts_bytes(const model_config *cfg, uint32_t n_ctx)
{
    size_t n_blocks = (n_ctx + ATTENTION_BLOCK - 1) / ATTENTION_BLOCK;
    return n_blocks * cfg->n_head * part_bytes(cfg->n_embd_head);
}

static void store_key(const compute *c, kv_cache *kv, size_t base, uint32_t position,
                      const float *key)
{
    uint32_t d = kv->n_embd_head;
    size_t at = base + (size_t)(position / KV_BLOCK) * d * KV_BLOCK + position % KV_BLOCK;
    if (kv->type == DTYPE_F32) {
        for (uint32_t i = 0; i < d; i++) {
            ((float *)kv->k)[at + (size_t)i * KV_BLOCK] = key[i];
        }
        return;
    }
    for (uint32_t i = 0; i < d; i += KV_BLOCK) {
        uint16_t half[KV_BLOCK];
        uint32_t n = d - i < KV_BLOCK ? d - i : KV_BLOCK;
        c->k->vec_to_f16(key + i, half, n);
        for (uint32_t l = 0; l < n; l++) {
            ((uint16_t *)kv->k)[at + (size_t)(i + l) * KV_BLOCK] = half[l];
        }
    }
}

void attention_store(const compute *c, kv_cache *kv, uint32_t layer, uint32_t pos0, uint32_t n,
                     const float *k, const float *v)
{
    uint32_t d = kv->n_embd_head;
    for (uint32_t t = 0; t < n; t++) {
        for (uint32_t h = 0; h < kv->n_head_kv; h++) {
            size_t base = kv_cache_at(kv, layer, h), from = ((size_t)t * kv->n_head_kv + h) * d;
            size_t at = base + (size_t)(pos0 + t) * d;
            store_key(c, kv, base, pos0 + t, k + from);
            if (kv->type == DTYPE_F32) {
                memcpy((float *)kv->v + at, v + from, d * sizeof *v);
            } else {
                c->k->vec_to_f16(v + from, (uint16_t *)kv->v + at, d);
            }
        }
    }
}

typedef struct attention_job {
    const compute *c;
    const kv_cache *kv;
    const attention_scratch *scratch;
    size_t thread_bytes;
    uint32_t layer, n_group, pos0, n_blocks;
    const float *q;
    float *out;
} attention_job;

static attention_part *part_at(void *parts, size_t i, uint32_t d)
{
    return (attention_part *)((uint8_t *)parts + i * part_bytes(d));
}

/* The n_group heads of one kv head over positions [first, first + n) of one block, n <= 256. */
static void one_block(const attention_job *job, uint32_t kv_head, uint32_t first, uint32_t n,
                      const float *q, float *scores, void *parts)
{
    float scale = 1.0f / sqrtf((float)job->kv->n_embd_head);
    const kv_cache *kv = job->kv;
    const kernels *k = job->c->k;
    uint32_t d = kv->n_embd_head;
    size_t base = kv_cache_at(kv, job->layer, kv_head) + (size_t)first * d;
    float *values = scores + (size_t)job->n_group * ATTENTION_BLOCK;
    k->attn_scores(kv->type, kv->k + base * kv->elem_bytes, q, job->n_group, d,
                   (n + KV_BLOCK - 1) / KV_BLOCK, scores, ATTENTION_BLOCK);
    for (uint32_t h = 0; h < job->n_group; h++) {
        attention_part *part = part_at(parts, h, d);
        float *s = scores + (size_t)h * ATTENTION_BLOCK;
        k->vec_scale(s, scale, n);
        part->max = k->vec_max(s, n);
        part->sum = k->vec_exp_sub_max(s, n, part->max);
    }
    k->attn_values(kv->type, kv->v + base * kv->elem_bytes, scores, ATTENTION_BLOCK, job->n_group,
                   d, n, values);
    for (uint32_t h = 0; h < job->n_group; h++) {
        memcpy(part_at(parts, h, d)->out, values + (size_t)h * d, d * sizeof *values);
    }
}

/* into = into and the next block together. */
static void merge(const kernels *k, attention_part *into, const attention_part *next, uint32_t d)
{
    float max = next->max > into->max ? next->max : into->max;
    float keep = kernel_expf(into->max - max), add = kernel_expf(next->max - max);
    into->max = max;
    into->sum = fmaf(next->sum, add, into->sum * keep);
    k->vec_scale(into->out, keep, d);
    k->vec_mad_f32(into->out, next->out, add, d);
}

static void finish(const kernels *k, const attention_part *part, uint32_t d, float *out)
{
    memcpy(out, part->out, d * sizeof *out);
    k->vec_scale(out, 1.0f / part->sum, d);
}

/* Many tokens: one item is a token and a kv head, all its blocks in turn. */
static void token_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const attention_job *job = ctx;
    uint32_t d = job->kv->n_embd_head, n_group = job->n_group;
    float *scores = (float *)(job->scratch->threads + thread * job->thread_bytes);
    void *parts = scores + (size_t)n_group * (ATTENTION_BLOCK + d);
    for (size_t i = begin; i < end; i++) {
        uint32_t t = (uint32_t)(i / job->kv->n_head_kv), h = (uint32_t)(i % job->kv->n_head_kv);
        uint32_t n_kv = job->pos0 + t + 1;
        size_t at = i * n_group * d;
        for (uint32_t first = 0; first < n_kv; first += ATTENTION_BLOCK) {
            uint32_t n = n_kv - first < ATTENTION_BLOCK ? n_kv - first : ATTENTION_BLOCK;
            void *to = first == 0 ? parts : part_at(parts, n_group, d);
            one_block(job, h, first, n, job->q + at, scores, to);
            for (uint32_t g = 0; first > 0 && g < n_group; g++) {
                merge(job->c->k, part_at(parts, g, d), part_at(to, g, d), d);
            }
        }
        for (uint32_t g = 0; g < n_group; g++) {
            finish(job->c->k, part_at(parts, g, d), d, job->out + at + g * d);
        }
    }
}

/* One token: one item is a kv head and a block. */
static void block_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const attention_job *job = ctx;
    uint32_t d = job->kv->n_embd_head, n_kv = job->pos0 + 1;
    float *scores = (float *)(job->scratch->threads + thread * job->thread_bytes);
    for (size_t i = begin; i < end; i++) {
        uint32_t h = (uint32_t)(i / job->n_blocks), first = (uint32_t)(i % job->n_blocks) *
                                                            ATTENTION_BLOCK;
        uint32_t n = n_kv - first < ATTENTION_BLOCK ? n_kv - first : ATTENTION_BLOCK;
        one_block(job, h, first, n, job->q + (size_t)h * job->n_group * d, scores,
                  part_at(job->scratch->parts, i * job->n_group, d));
    }
}

static void merge_blocks(const attention_job *job)
{
    uint32_t d = job->kv->n_embd_head, n_head = job->kv->n_head_kv * job->n_group;
    for (uint32_t head = 0; head < n_head; head++) {
        size_t first = (size_t)(head / job->n_group) * job->n_blocks * job->n_group;
        attention_part *all = part_at(job->scratch->parts, first + head % job->n_group, d);
        for (uint32_t b = 1; b < job->n_blocks; b++) {
            size_t i = first + (size_t)b * job->n_group + head % job->n_group;
            merge(job->c->k, all, part_at(job->scratch->parts, i, d), d);
        }
        finish(job->c->k, all, d, job->out + (size_t)head * d);
    }
}

void attention(const compute *c, const kv_cache *kv, uint32_t layer, const model_config *cfg,
               uint32_t pos0, uint32_t n, const float *q, const attention_scratch *scratch,
               float *out)
{
    attention_job job = {.c = c, .kv = kv, .scratch = scratch,
                         .thread_bytes = attention_thread_bytes(cfg), .layer = layer,
                         .n_group = cfg->n_head / cfg->n_head_kv, .pos0 = pos0,
                         .n_blocks = pos0 / ATTENTION_BLOCK + 1, .q = q, .out = out};
    if (n > 1) {
        pool_for(c->pool, (size_t)n * kv->n_head_kv, 1, token_range, &job);
    } else {
        pool_for(c->pool, (size_t)kv->n_head_kv * job.n_blocks, 1, block_range, &job);
        merge_blocks(&job);
    }
}
