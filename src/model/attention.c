/* attention.c: see attention.h. Vaswani et al. 2017; grouped queries: Ainslie et al. 2023. */
#include "model/attention.h"

#include <math.h>
#include <string.h>

void attention_store(const compute *c, kv_cache *kv, uint32_t layer, uint32_t pos0, uint32_t n,
                     const float *k, const float *v)
{
    uint32_t d = kv->n_embd_head;
    for (uint32_t t = 0; t < n; t++) {
        for (uint32_t h = 0; h < kv->n_head_kv; h++) {
            size_t at = kv_cache_at(kv, layer, h, pos0 + t);
            size_t from = ((size_t)t * kv->n_head_kv + h) * d;
            if (kv->type == DTYPE_F32) {
                memcpy(kv->k + at, k + from, d * sizeof *k);
                memcpy(kv->v + at, v + from, d * sizeof *v);
            } else {
                c->k->vec_to_f16(k + from, (uint16_t *)(kv->k + at), d);
                c->k->vec_to_f16(v + from, (uint16_t *)(kv->v + at), d);
            }
        }
    }
}

struct attention_job {
    const compute *c;
    const kv_cache *kv;
    uint32_t layer, n_head, pos0;
    const float *q;
    float *scores, *out;
    float scale;
};

/* One query head of one position over keys and values 0 .. n_kv-1. */
static void attend(const struct attention_job *job, uint32_t kv_head, uint32_t n_kv, const float *q,
                   float *scores, float *out)
{
    const kv_cache *kv = job->kv;
    const kernels *k = job->c->k;
    uint32_t d = kv->n_embd_head;
    bool f16 = kv->type == DTYPE_F16;
    const uint8_t *keys = kv->k + kv_cache_at(kv, job->layer, kv_head, 0);
    const uint8_t *values = kv->v + kv_cache_at(kv, job->layer, kv_head, 0);
    for (uint32_t j = 0; j < n_kv; j++) {
        const void *key = keys + j * kv->row_bytes;
        scores[j] = f16 ? k->vec_dot_f16(key, q, d) : k->vec_dot_f32(key, q, d);
    }
    k->vec_scale(scores, job->scale, n_kv);
    float sum = k->vec_exp_sub_max(scores, n_kv, k->vec_max(scores, n_kv));
    memset(out, 0, d * sizeof *out);
    for (uint32_t j = 0; j < n_kv; j++) {
        const void *value = values + j * kv->row_bytes;
        if (f16) {
            k->vec_mad_f16(out, value, scores[j], d);
        } else {
            k->vec_mad_f32(out, value, scores[j], d);
        }
    }
    k->vec_scale(out, 1.0f / sum, d);
}

static void attention_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const struct attention_job *job = ctx;
    uint32_t d = job->kv->n_embd_head, n_group = job->n_head / job->kv->n_head_kv;
    float *scores = job->scores + (size_t)thread * job->kv->n_ctx;
    for (size_t i = begin; i < end; i++) { /* i = token * n_head + head */
        uint32_t t = (uint32_t)(i / job->n_head), h = (uint32_t)(i % job->n_head);
        attend(job, h / n_group, job->pos0 + t + 1, job->q + i * d, scores, job->out + i * d);
    }
}

void attention(const compute *c, const kv_cache *kv, uint32_t layer, uint32_t n_head, uint32_t pos0,
               uint32_t n, const float *q, float *scores, float *out)
{
    struct attention_job job = {c, kv, layer, n_head, pos0, q, scores, out,
                                1.0f / sqrtf((float)kv->n_embd_head)};
    size_t work = (size_t)(pos0 + n) * kv->n_embd_head; /* of one head */
    pool_for(c->pool, (size_t)n * n_head, 16 * 1024 / work + 1, attention_range, &job);
}
