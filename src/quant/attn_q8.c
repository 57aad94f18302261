/* attn_q8.c: see attn_q8.h. The reference of attention over 8 bits, in plain C that says what the
 * kernels compute. */
#include "quant/attn_q8.h"

#include <math.h>

#include "quant/attn_q8_levels.h"
#include "quant/blocks.h"
#include "quant/quant.h"

void attn_q8_quantize_ref(const float *x, int64_t d, int16_t *levels, float *scale)
{
    attn_q8_quantize_row(x, d, levels, scale);
}

static float scale_at(const uint8_t *tile, int p)
{
    return f16_to_f32(half_get(tile + 2 * p));
}

void attn_q8_scores_ref(const void *keys, attn_q8_query q, int64_t n_rows, int64_t d,
                        int64_t n_tiles, float *scores, int64_t stride)
{
    for (int64_t r = 0; r < n_rows; r++) {
        for (int64_t j = 0; j < n_tiles * ATTN_Q8_POSITIONS; j++) {
            const int p = (int)(j % ATTN_Q8_POSITIONS);
            const uint8_t *tile = (const uint8_t *)keys + (size_t)(j / ATTN_Q8_POSITIONS) *
                                                              (size_t)(d / ATTN_Q8_DIMS) *
                                                              ATTN_Q8_TILE_BYTES;
            float total = 0;
            for (int64_t g = 0; g < d; g += ATTN_Q8_DIMS, tile += ATTN_Q8_TILE_BYTES) {
                int32_t sum = 0;
                for (int i = 0; i < ATTN_Q8_DIMS; i++) {
                    sum += q.levels[r * d + g + i] * (int8_t)tile[attn_q8_key_at(p, i)];
                }
                total = fmaf(scale_at(tile, p), (float)sum, total);
            }
            scores[r * stride + j] = q.d[r] * total;
        }
    }
}

/* 32 dimensions of one query; `tiles` are tile_stride bytes apart. */
static void values_group(const uint8_t *tiles, size_t tile_stride, const float *p, int64_t n,
                         float *out)
{
    float t[ATTN_Q8_MAX_VALUES];
    int16_t w[ATTN_Q8_MAX_VALUES];

    for (int64_t j = 0; j < n; j++) {
        t[j] = scale_at(tiles + (size_t)(j / ATTN_Q8_POSITIONS) * tile_stride,
                        (int)(j % ATTN_Q8_POSITIONS));
    }
    const float factor = attn_q8_multipliers(t, n);
    attn_q8_weights(p, t, n, w);
    for (int i = 0; i < ATTN_Q8_DIMS; i++) {
        int32_t sum = 0;
        for (int64_t j = 0; j < n; j++) {
            const uint8_t *tile = tiles + (size_t)(j / ATTN_Q8_POSITIONS) * tile_stride;
            sum += w[j] * (int8_t)tile[attn_q8_value_at((int)(j % ATTN_Q8_POSITIONS), i)];
        }
        out[i] = factor * (float)sum;
    }
}

void attn_q8_values_ref(const void *values, const float *p, int64_t stride, int64_t n_rows,
                        int64_t d, int64_t n, float *out)
{
    const size_t tile_stride = (size_t)(d / ATTN_Q8_DIMS) * ATTN_Q8_TILE_BYTES;

    for (int64_t r = 0; r < n_rows; r++) {
        for (int64_t g = 0; g < d / ATTN_Q8_DIMS; g++) {
            values_group((const uint8_t *)values + (size_t)g * ATTN_Q8_TILE_BYTES, tile_stride,
                         p + r * stride, n, out + r * d + g * ATTN_Q8_DIMS);
        }
    }
}
