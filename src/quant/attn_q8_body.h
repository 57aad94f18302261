/* attn_q8_body.h: the kernels of attn_q8.h, once for all instruction sets; a part of panel_body.h.
 *
 * The one idea: keys and values are panels, whose rows are positions and dimensions, and queries
 * and weights are 16-bit activations. Bytes become pairs of 16 bits in registers, and one multiply
 * of pairs serves 16 lanes. */
#include "quant/attn_ahead.h"
#include "quant/attn_q8.h"
#include "quant/attn_q8_levels.h"

/* Rows of a tile; TILE_PANELS panels wide. */
enum { Q8_ROWS = TILE_PANELS == 2 ? 8 : 4 };

/* Keeps a compiler from making one address per row and step, and spilling them all. */
#define Q8_OPAQUE(pointer) __asm__("" : "+r"(pointer))

typedef s16 q8_sums[Q8_ROWS][TILE_PANELS];

/* sums[r][p] += 4 * n_quads levels of panel p times row r, both n_rows and n_quads constants. */
INLINE void q8_dots(int n_rows, int n_quads, const uint8_t *const panels[TILE_PANELS],
                    const int16_t *x, int64_t stride, q8_sums sums)
{
    const int16_t *rows[Q8_ROWS];

    UNROLL
    for (int r = 0; r < n_rows; r++) {
        rows[r] = x + r * stride;
        Q8_OPAQUE(rows[r]);
    }
    UNROLL
    for (int i = 0; i < n_quads; i++) {
        w64 quads[TILE_PANELS];
        UNROLL
        for (int p = 0; p < TILE_PANELS; p++) {
            quads[p] = w64_load(panels[p] + 64 * i);
        }
        UNROLL
        for (int odd = 0; odd < 2; odd++) {
            w64 pairs[TILE_PANELS];
            UNROLL
            for (int p = 0; p < TILE_PANELS; p++) {
                pairs[p] = pairs_signed(quads[p], odd);
            }
            UNROLL
            for (int r = 0; r < n_rows; r++) {
                const x4 levels = x4_load(rows[r] + 4 * i + 2 * odd);
                UNROLL
                for (int p = 0; p < TILE_PANELS; p++) {
                    sums[r][p] = s16_add_pairs(sums[r][p], pairs[p], levels);
                }
            }
        }
    }
}

INLINE void q8_prefetch(const uint8_t *p, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i += ATTN_LINE) {
        __builtin_prefetch(p + i);
    }
}

INLINE void q8_zero(int n_rows, q8_sums sums)
{
    UNROLL
    for (int i = 0; i < n_rows * TILE_PANELS; i++) {
        sums[i / TILE_PANELS][i % TILE_PANELS] = s16_zero();
    }
}

/* n_rows (a constant) queries times the keys of TILE_PANELS times 16 positions, of which `left`
 * exist; the missing repeat the first. */
INLINE void q8_scores_tile(int n_rows, const uint8_t *keys, int64_t left, attn_q8_query q,
                           int64_t d, float *scores, int64_t stride)
{
    const size_t panel_bytes = (size_t)(d / ATTN_Q8_DIMS) * ATTN_Q8_TILE_BYTES;
    v16 totals[Q8_ROWS][TILE_PANELS];
    const uint8_t *panels[TILE_PANELS];

    for (int p = 0; p < TILE_PANELS; p++) {
        panels[p] = keys + (p < left ? (size_t)p * panel_bytes : 0);
    }
    UNROLL
    for (int i = 0; i < n_rows * TILE_PANELS; i++) {
        totals[i / TILE_PANELS][i % TILE_PANELS] = v16_set1(0);
    }
    for (int64_t g = 0; g < d; g += ATTN_Q8_DIMS) {
        const uint8_t *levels[TILE_PANELS];
        q8_sums sums;
        q8_zero(n_rows, sums);
        for (int p = 0; p < TILE_PANELS; p++) {
            levels[p] = panels[p] + 32;
        }
        q8_dots(n_rows, ATTN_Q8_DIMS / 4, levels, q.levels + g, d, sums);
        UNROLL
        for (int p = 0; p < TILE_PANELS; p++) {
            const v16 scale = v16_from_f16(panels[p]);
            UNROLL
            for (int r = 0; r < n_rows; r++) {
                totals[r][p] = v16_fma(scale, v16_from_s16(sums[r][p]), totals[r][p]);
            }
            panels[p] += ATTN_Q8_TILE_BYTES;
        }
    }
    UNROLL
    for (int r = 0; r < n_rows; r++) {
        UNROLL
        for (int p = 0; p < TILE_PANELS; p++) {
            if (p < left) {
                v16_store(scores + r * stride + LANES * p,
                          v16_mul(v16_set1(q.d[r]), totals[r][p]));
            }
        }
    }
}

static void attn_q8_scores(const void *keys, attn_q8_query q, int64_t n_rows, int64_t d,
                           int64_t n_tiles, float *scores, int64_t stride)
{
    const size_t panel_bytes = (size_t)(d / ATTN_Q8_DIMS) * ATTN_Q8_TILE_BYTES;

    for (int64_t i = 0; i < n_tiles; i += TILE_PANELS) {
        const uint8_t *panel = (const uint8_t *)keys + (size_t)i * panel_bytes;
        int64_t r = 0;
        q8_prefetch(panel + ATTN_AHEAD / LANES * panel_bytes, TILE_PANELS * panel_bytes);
        for (; r + Q8_ROWS <= n_rows; r += Q8_ROWS) {
            const attn_q8_query some = {q.levels + r * d, q.d + r};
            q8_scores_tile(Q8_ROWS, panel, n_tiles - i, some, d, scores + r * stride + LANES * i,
                           stride);
        }
        for (; r < n_rows; r++) {
            const attn_q8_query one = {q.levels + r * d, q.d + r};
            q8_scores_tile(1, panel, n_tiles - i, one, d, scores + r * stride + LANES * i, stride);
        }
    }
}

/* n_rows (a constant) queries with weights w [n_rows][ATTN_Q8_MAX_VALUES] times 32 dimensions of
 * the values of n positions. */
INLINE void q8_values_tile(int n_rows, const uint8_t *tiles, size_t tile_stride, const int16_t *w,
                           int64_t n, float factor, float *out, int64_t d)
{
    for (int half = 0; half < 2; half += TILE_PANELS) {
        q8_sums sums;
        q8_zero(n_rows, sums);
        for (int64_t j = 0; j < n; j += ATTN_Q8_POSITIONS) {
            const uint8_t *tile = tiles + (size_t)(j / ATTN_Q8_POSITIONS) * tile_stride;
            const uint8_t *levels[TILE_PANELS];
            if (half == 0) {
                q8_prefetch(tile + ATTN_AHEAD / LANES * tile_stride, ATTN_Q8_TILE_BYTES);
            }
            for (int p = 0; p < TILE_PANELS; p++) {
                levels[p] = tile + 32 + 256 * (half + p);
            }
            q8_dots(n_rows, ATTN_Q8_POSITIONS / 4, levels, w + j, ATTN_Q8_MAX_VALUES, sums);
        }
        UNROLL
        for (int r = 0; r < n_rows; r++) {
            UNROLL
            for (int p = 0; p < TILE_PANELS; p++) {
                v16_store(out + r * d + LANES * (half + p),
                          v16_mul(v16_set1(factor), v16_from_s16(sums[r][p])));
            }
        }
    }
}

static void attn_q8_values(const void *values, const float *p, int64_t stride, int64_t n_rows,
                           int64_t d, int64_t n, float *out)
{
    const size_t tile_stride = (size_t)(d / ATTN_Q8_DIMS) * ATTN_Q8_TILE_BYTES;
    float t[ATTN_Q8_MAX_VALUES];
    int16_t w[Q8_ROWS * ATTN_Q8_MAX_VALUES];

    for (int64_t g = 0; g < d / ATTN_Q8_DIMS; g++) {
        const uint8_t *tiles = (const uint8_t *)values + (size_t)g * ATTN_Q8_TILE_BYTES;
        int64_t r = 0;
        for (int64_t j = 0; j < n; j += ATTN_Q8_POSITIONS) {
            v16_store(t + j, v16_from_f16(tiles + (size_t)(j / ATTN_Q8_POSITIONS) * tile_stride));
        }
        const float factor = attn_q8_multipliers(t, n);
        for (; r + Q8_ROWS <= n_rows; r += Q8_ROWS) {
            for (int64_t i = 0; i < Q8_ROWS; i++) {
                attn_q8_weights(p + (r + i) * stride, t, n, w + i * ATTN_Q8_MAX_VALUES);
            }
            q8_values_tile(Q8_ROWS, tiles, tile_stride, w, n, factor, out + r * d + 32 * g, d);
        }
        for (; r < n_rows; r++) {
            attn_q8_weights(p + r * stride, t, n, w);
            q8_values_tile(1, tiles, tile_stride, w, n, factor, out + r * d + 32 * g, d);
        }
    }
}
