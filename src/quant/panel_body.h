/* panel_body.h: the vector panel kernels, once for all instruction sets. An including file
 * (panel_avx2.c and its siblings) first includes the panel_simd_*.h that defines the vectors, and
 * names the table.
 *
 * The one idea: a lane is a row, so nothing is ever summed across lanes and each row's chain of
 * additions is the same whatever the register width, tile or batch. One vector streams through the
 * panel and decodes in registers. Many vectors share the work of decoding: 256 columns of
 * TILE_PANELS panels are unpacked once to bytes in the L1 cache and multiplied with tiles of
 * TILE_VECTORS vectors. */
#include <stdbool.h>
#include <string.h>

#include "quant/act_body.h"
#include "quant/panel_tables.h"
#include "quant/panel_types.h"

enum {
    LANES = PANEL_ROWS,
    N_CHUNK = 96,          /* vectors that share one unpacking */
    PREFETCH_BYTES = 6144, /* ahead: measured, 4 to 8 KiB do */
};

typedef struct job {
    const uint8_t *panels;
    size_t one_panel_bytes;
    int64_t n_rows, cols;
    panel_x x;
    float *out;
    int64_t out_stride;
} job;

static inline void store_rows(const job *j, int64_t vector, int64_t row, v16 v)
{
    float *out = j->out + vector * j->out_stride + row;

    if (j->n_rows - row >= LANES) {
        v16_store(out, v);
        return;
    }
    float all[LANES];
    v16_store(all, v);
    memcpy(out, all, (size_t)(j->n_rows - row) * sizeof(float));
}

/* Panel p of a tile of TILE_PANELS from `row` on. Past the last panel the tile repeats its first;
 * those results are dropped. */
static inline const uint8_t *panel_at(const job *j, int64_t row, int p)
{
    const int64_t i = row / LANES + (row + LANES * p < j->n_rows ? p : 0);

    return j->panels + (size_t)i * j->one_panel_bytes;
}

/* Blocks of 32 in the 256 columns that start at k. */
INLINE int n_blocks_32(const job *j, int64_t k)
{
    return (int)(j->cols - k < ACT_ELEMS ? (j->cols - k) / 32 : ACT_ELEMS / 32);
}

/* ---- one vector, or two that share the decoding ---- */

enum { MAX_FEW = 2 };

/* totals[v] = 256 columns of one panel times vector v, for n (a constant) vectors. */
INLINE void dot_groups(dtype type, int n, const uint8_t *b, const act_block *x, int64_t stride,
                       v16 totals[MAX_FEW])
{
    const int steps = N_STEPS / n_groups(type);
    const int flush = steps < PART_STEPS(max_level(type)) ? steps : PART_STEPS(max_level(type));
    s16 sums[MAX_FEW], sums_mins[MAX_FEW];

    UNROLL
    for (int v = 0; v < n; v++) {
        sums[v] = sums_mins[v] = s16_zero();
    }
    UNROLL
    for (int i = 0; i < n_groups(type) / 4; i++) {
        const w64 scales = scales_of(type, b, i), mins = mins_of(type, b, i);
        UNROLL
        for (int g = 4 * i; g < 4 * i + 4; g++) {
            UNROLL
            for (int f = 0; f < steps; f += flush) {
                part parts[MAX_FEW];
                UNROLL
                for (int v = 0; v < n; v++) {
                    parts[v] = part_zero();
                }
                UNROLL
                for (int s = f; s < f + flush; s++) {
                    const w64 w = weights_of(type, b, g, s);
                    UNROLL
                    for (int v = 0; v < n; v++) {
                        const x4 levels = x4_load((x + v * stride)->qs + 4 * (steps * g + s));
                        parts[v] = dot_part(parts[v], w, levels);
                    }
                }
                UNROLL
                for (int v = 0; v < n; v++) {
                    sums[v] = s16_add_scaled(sums[v], parts[v], scale_of(type, scales, g % 4));
                }
            }
        }
        UNROLL
        for (int odd = 0; odd < 2; odd++) {
            UNROLL
            for (int v = 0; v < n; v++) {
                sums_mins[v] = s16_add_pairs(sums_mins[v], min_pairs_of(type, mins, odd),
                                             sum_pair_of(type, x + v * stride, 2 * i + odd));
            }
        }
    }
    const v16 d = v16_from_f16(d_of(type, b)), dmin = v16_from_f16(d_of(type, b) + 32);
    UNROLL
    for (int v = 0; v < n; v++) {
        totals[v] = finish(type, sums[v], sums_mins[v], d, dmin);
    }
}

/* The same for types of blocks of 32, added to acc. */
INLINE void add_blocks_32(dtype type, int n, const uint8_t *b, const act_block *x, int64_t stride,
                          int n_32, v16 acc[MAX_FEW])
{
    const int block_bytes = type == DTYPE_Q8_0 ? 544 : 288;

    for (int i = 0; i < n_32; i++, b += block_bytes) {
        s16 sums[MAX_FEW];
        UNROLL
        for (int v = 0; v < n; v++) {
            sums[v] = signed_start(&(x + v * stride)->bias32[i]);
        }
        UNROLL
        for (int s = 0; s < 8; s++) {
            const w64 w = signed_weights_of(type, b, s);
            UNROLL
            for (int v = 0; v < n; v++) {
                const x4 levels = x4_load((x + v * stride)->qs + 32 * i + 4 * s);
                sums[v] = dot_signed(sums[v], w, levels);
            }
        }
        UNROLL
        for (int v = 0; v < n; v++) {
            const v16 d = v16_mul(v16_from_f16(b), v16_set1((x + v * stride)->d[i]));
            acc[v] = v16_fma(d, v16_from_s16(sums[v]), acc[v]);
        }
    }
}

/* The 256 columns that lie n_bytes ahead. Parts of a block are read by turns, which hardware does
 * not see through: without this, half the bandwidth of DRAM. An address past the weights does
 * nothing. */
INLINE void prefetch(dtype type, const uint8_t *b, size_t n_bytes)
{
    for (size_t i = 0; i < bytes_of_256(type); i += 64) {
        __builtin_prefetch(b + n_bytes + i);
    }
}

INLINE void few_act(dtype type, int n, const job *j)
{
    const size_t bytes_256 = bytes_of_256(type);

    for (int64_t row = 0; row < j->n_rows; row += LANES) {
        const uint8_t *b = j->panels + (size_t)(row / LANES) * j->one_panel_bytes;
        const act_block *x = j->x.data;
        v16 acc[MAX_FEW] = {v16_set1(0), v16_set1(0)};
        for (int64_t k = 0; k < j->cols; k += ACT_ELEMS, x++, b += bytes_256) {
            v16 totals[MAX_FEW];
            if (type != DTYPE_Q8_0) { /* is read in order and does best alone */
                prefetch(type, b, PREFETCH_BYTES);
            }
            if (is_signed(type)) {
                add_blocks_32(type, n, b, x, j->x.stride, n_blocks_32(j, k), acc);
                continue;
            }
            dot_groups(type, n, b, x, j->x.stride, totals);
            UNROLL
            for (int v = 0; v < n; v++) {
                acc[v] = v16_fma(v16_set1((x + v * j->x.stride)->d[0]), totals[v], acc[v]);
            }
        }
        UNROLL
        for (int v = 0; v < n; v++) {
            store_rows(j, v, row, acc[v]);
        }
    }
}

/* ---- many vectors ---- */

/* 256 columns of one panel. */
typedef struct unpacked {
    uint8_t w[N_STEPS][64];
    uint8_t scales[MAX_GROUPS][64];    /* scl */
    uint8_t pairs[MAX_GROUPS / 2][64]; /* of the mins */
    float d[8][LANES];                 /* d, dmin; or the d of eight blocks */
} unpacked;

INLINE void unpack_groups(dtype type, const uint8_t *b, unpacked *u)
{
    const int steps = N_STEPS / n_groups(type);

    UNROLL
    for (int g = 0; g < n_groups(type); g++) {
        const scl scale = scale_of(type, scales_of(type, b, g / 4), g % 4);
        UNROLL
        for (int s = 0; s < steps; s++) {
            const w64 w = weights_of(type, b, g, s);
            w64_store(u->w[steps * g + s], is_prescaled(type) ? w64_scaled(w, scale) : w);
        }
        scl_store(u->scales[g], scale);
    }
    UNROLL
    for (int i = 0; i < n_groups(type) / 2; i++) {
        w64_store(u->pairs[i], min_pairs_of(type, mins_of(type, b, i / 2), i % 2));
    }
    v16_store(u->d[0], v16_from_f16(d_of(type, b)));
    if (has_mins(type)) {
        v16_store(u->d[1], v16_from_f16(d_of(type, b) + 32));
    }
}

INLINE void unpack_blocks_32(dtype type, const uint8_t *b, unpacked *u, int n)
{
    for (int i = 0; i < n; i++, b += type == DTYPE_Q8_0 ? 544 : 288) {
        UNROLL
        for (int s = 0; s < 8; s++) {
            w64_store(u->w[8 * i + s], signed_weights_of(type, b, s));
        }
        v16_store(u->d[i], v16_from_f16(b));
    }
}

typedef s16 tile_sums[TILE_PANELS][TILE_VECTORS];

INLINE void tile_add(const act_block *x, float *acc, int p, v16 s)
{
    v16_store(acc + LANES * p, v16_fma(v16_set1(x->d[0]), s, v16_load(acc + LANES * p)));
}

/* sums[p][v] += 4 * n_steps columns, from step `first` on. */
INLINE void tile_dots(int n, const unpacked *u, const act_block *x, int64_t stride, int first,
                      int n_steps, tile_sums sums)
{
    UNROLL
    for (int s = first; s < first + n_steps; s++) {
        UNROLL
        for (int v = 0; v < n; v++) {
            const x4 levels = x4_load((x + v * stride)->qs + 4 * s);
            UNROLL
            for (int p = 0; p < TILE_PANELS; p++) {
                sums[p][v] = dot_signed(sums[p][v], w64_load(u[p].w[s]), levels);
            }
        }
    }
}

/* sums[p][v] += the groups' sums times their scales, over 256 columns. */
INLINE void tile_scaled_dots(dtype type, int n, const unpacked *u, const act_block *x,
                             int64_t stride, tile_sums sums)
{
    const int steps = N_STEPS / n_groups(type);
    const int flush = steps < PART_STEPS(max_level(type)) ? steps : PART_STEPS(max_level(type));

    for (int step = 0; step < N_STEPS; step += flush) {
        part parts[TILE_PANELS][TILE_VECTORS];
        UNROLL
        for (int i = 0; i < TILE_PANELS * n; i++) {
            parts[i / n][i % n] = part_zero();
        }
        UNROLL
        for (int s = step; s < step + flush; s++) {
            UNROLL
            for (int v = 0; v < n; v++) {
                const x4 levels = x4_load((x + v * stride)->qs + 4 * s);
                UNROLL
                for (int p = 0; p < TILE_PANELS; p++) {
                    parts[p][v] = dot_part(parts[p][v], w64_load(u[p].w[s]), levels);
                }
            }
        }
        UNROLL
        for (int i = 0; i < TILE_PANELS * n; i++) {
            const scl scale = scl_load(u[i / n].scales[step / steps]);
            sums[i / n][i % n] = s16_add_scaled(sums[i / n][i % n], parts[i / n][i % n], scale);
        }
    }
}

/* acc [n][TILE_PANELS][16] += 256 columns of TILE_PANELS panels times n vectors, n a constant. */
INLINE void tile_groups(dtype type, int n, const unpacked *u, const act_block *x, int64_t stride,
                        float *acc)
{
    tile_sums sums, sums_mins;

    UNROLL
    for (int i = 0; i < TILE_PANELS * n; i++) {
        sums[i / n][i % n] = sums_mins[i / n][i % n] = s16_zero();
    }
    if (is_prescaled(type)) {
        for (int s = 0; s < N_STEPS; s += 8) {
            tile_dots(n, u, x, stride, s, 8, sums);
        }
    } else {
        tile_scaled_dots(type, n, u, x, stride, sums);
    }
    UNROLL
    for (int k = 0; k < n_groups(type) / 2; k++) {
        UNROLL
        for (int v = 0; v < n; v++) {
            const x4 pair = sum_pair_of(type, x + v * stride, k);
            UNROLL
            for (int p = 0; p < TILE_PANELS; p++) {
                sums_mins[p][v] = s16_add_pairs(sums_mins[p][v], w64_load(u[p].pairs[k]), pair);
            }
        }
    }
    UNROLL
    for (int i = 0; i < TILE_PANELS * n; i++) {
        const int p = i / n, v = i % n;
        tile_add(x + v * stride, acc + v * TILE_PANELS * LANES, p,
                 finish(type, sums[p][v], sums_mins[p][v], v16_load(u[p].d[0]),
                        v16_load(u[p].d[1])));
    }
}

INLINE void tile_blocks_32(int n, const unpacked *u, const act_block *x, int64_t stride, int n_32,
                           float *acc)
{
    v16 totals[TILE_PANELS][TILE_VECTORS];

    UNROLL
    for (int i = 0; i < TILE_PANELS * n; i++) {
        totals[i / n][i % n] = v16_load(acc + (i % n * TILE_PANELS + i / n) * LANES);
    }
    for (int b = 0; b < n_32; b++) {
        tile_sums sums;
        UNROLL
        for (int i = 0; i < TILE_PANELS * n; i++) {
            sums[i / n][i % n] = signed_start(&(x + i % n * stride)->bias32[b]);
        }
        tile_dots(n, u, x, stride, 8 * b, 8, sums);
        UNROLL
        for (int i = 0; i < TILE_PANELS * n; i++) {
            const v16 sum = v16_from_s16(sums[i / n][i % n]);
            const v16 d = v16_mul(v16_load(u[i / n].d[b]), v16_set1((x + i % n * stride)->d[b]));
            totals[i / n][i % n] = v16_fma(d, sum, totals[i / n][i % n]);
        }
    }
    UNROLL
    for (int i = 0; i < TILE_PANELS * n; i++) {
        v16_store(acc + (i % n * TILE_PANELS + i / n) * LANES, totals[i / n][i % n]);
    }
}

INLINE void tile_act(dtype type, int n, const unpacked *u, const act_block *x, int64_t stride,
                     int n_32, float *acc)
{
    if (is_signed(type)) {
        tile_blocks_32(n, u, x, stride, n_32, acc);
    } else {
        tile_groups(type, n, u, x, stride, acc);
    }
}

/* Some tiles of one width, and what of the next columns is fetched meanwhile: a few lines beside
 * each tile, because the processor keeps only so many under way. */
typedef struct tile_run {
    const unpacked *u;
    const act_block *x;
    int64_t stride, n_tiles;
    int n_32;
    float *acc;
    const uint8_t *ahead[TILE_PANELS];
    int64_t n_lines_each;
} tile_run;

INLINE void run_tiles(dtype type, int n, tile_run *r)
{
    for (int64_t i = 0; i < r->n_tiles; i++) {
        for (int64_t line = 0; line < r->n_lines_each; line++) {
            UNROLL
            for (int p = 0; p < TILE_PANELS; p++) {
                __builtin_prefetch(r->ahead[p] + 64 * line);
            }
        }
        UNROLL
        for (int p = 0; p < TILE_PANELS; p++) {
            r->ahead[p] += 64 * r->n_lines_each;
        }
        tile_act(type, n, r->u, r->x, r->stride, r->n_32, r->acc);
        r->x += n * r->stride;
        r->acc += n * TILE_PANELS * LANES;
    }
}

INLINE void run_tiles_of(dtype type, int64_t n, tile_run *r)
{
    switch (n) {
    case 1: run_tiles(type, 1, r); break;
    case 2: run_tiles(type, 2, r); break;
    case 3: run_tiles(type, 3, r); break;
    case 4: run_tiles(type, 4, r); break;
#if TILE_VECTORS > 4
    case 5: run_tiles(type, 5, r); break;
    case 6: run_tiles(type, 6, r); break;
#endif
    default: break;
    }
}

/* n_x <= N_CHUNK vectors from `first` on times the TILE_PANELS panels from `row` on. Tiles are as
 * equal as they can be: a narrow one waits for its own sums. */
INLINE void panels_act(dtype type, const job *j, int64_t row, int64_t first, int64_t n_x)
{
    const size_t bytes_256 = bytes_of_256(type);
    const int64_t stride = j->x.stride;
    const int64_t n_tiles = (n_x + TILE_VECTORS - 1) / TILE_VECTORS;
    unpacked u[TILE_PANELS] __attribute__((aligned(64)));
    float acc[N_CHUNK * TILE_PANELS * LANES] __attribute__((aligned(64)));

    /* Fetched while the last columns are computed; past the last row too, because there the
     * caller's next slice of rows begins. */
    const uint8_t *next = j->panels + (size_t)(row / LANES + TILE_PANELS) * j->one_panel_bytes;

    memset(acc, 0, (size_t)n_x * TILE_PANELS * LANES * sizeof(float));
    for (int64_t k = 0; k < j->cols; k += ACT_ELEMS) {
        const act_block *x = j->x.data + first * stride + k / ACT_ELEMS;
        const int n_32 = n_blocks_32(j, k);
        const bool is_last = k + ACT_ELEMS >= j->cols;
        tile_run r = {.u = u, .x = x, .stride = stride, .n_32 = n_32, .acc = acc,
                      .n_lines_each = (int64_t)(bytes_256 / 64 + n_tiles - 1) / n_tiles};
        for (int p = 0; p < TILE_PANELS; p++) {
            const uint8_t *b = panel_at(j, row, p) + (size_t)(k / ACT_ELEMS) * bytes_256;
            r.ahead[p] = is_last ? next + (size_t)p * j->one_panel_bytes : b + bytes_256;
            if (is_signed(type)) {
                unpack_blocks_32(type, b, &u[p], n_32);
            } else {
                unpack_groups(type, b, &u[p]);
            }
        }
        r.n_tiles = n_x % n_tiles;
        run_tiles_of(type, n_x / n_tiles + 1, &r);
        r.n_tiles = n_tiles - n_x % n_tiles;
        run_tiles_of(type, n_x / n_tiles, &r);
    }
    for (int64_t v = 0; v < n_x; v++) {
        for (int p = 0; p < TILE_PANELS && row + LANES * p < j->n_rows; p++) {
            store_rows(j, first + v, row + LANES * p,
                       v16_load(acc + (v * TILE_PANELS + p) * LANES));
        }
    }
}

/* A chunk of vectors stays in the L2 cache while all panels pass by. */
INLINE void matrix_act(dtype type, const job *j)
{
    for (int64_t first = 0; first < j->x.n; first += N_CHUNK) {
        const int64_t n_x = j->x.n - first < N_CHUNK ? j->x.n - first : N_CHUNK;
        for (int64_t row = 0; row < j->n_rows; row += TILE_PANELS * LANES) {
            panels_act(type, j, row, first, n_x);
        }
    }
}

/* ---- attention over 8 bits ---- */

#include "quant/attn_q8_body.h"

/* ---- the table ---- */

#define FOR_ACT(name, type)                                                       \
    static void name##_vector(const job *j) { few_act(type, 1, j); }              \
    static void name##_pair(const job *j) { few_act(type, 2, j); }                \
    static void name##_matrix(const job *j) { matrix_act(type, j); }              \
    static void name(const job *j)                                                \
    {                                                                             \
        (j->x.n == 1 ? name##_vector : j->x.n == 2 ? name##_pair : name##_matrix)(j); \
    }

FOR_ACT(matmul_q4_0, DTYPE_Q4_0)
FOR_ACT(matmul_q8_0, DTYPE_Q8_0)
FOR_ACT(matmul_q2_K, DTYPE_Q2_K)
FOR_ACT(matmul_q3_K, DTYPE_Q3_K)
FOR_ACT(matmul_q4_K, DTYPE_Q4_K)
FOR_ACT(matmul_q5_K, DTYPE_Q5_K)
FOR_ACT(matmul_q6_K, DTYPE_Q6_K)

static void matmul(dtype type, const void *panels, int64_t n_rows, int64_t cols, panel_x x,
                   float *out, int64_t out_stride)
{
    const job j = {panels, panel_bytes(type, (uint64_t)cols), n_rows, cols, x, out, out_stride};

    switch (type) {
    case DTYPE_Q4_0: matmul_q4_0(&j); break;
    case DTYPE_Q8_0: matmul_q8_0(&j); break;
    case DTYPE_Q2_K: matmul_q2_K(&j); break;
    case DTYPE_Q3_K: matmul_q3_K(&j); break;
    case DTYPE_Q4_K: matmul_q4_K(&j); break;
    case DTYPE_Q5_K: matmul_q5_K(&j); break;
    case DTYPE_Q6_K: matmul_q6_K(&j); break;
    default: break; /* not panel_supported: the caller has asked before */
    }
}

const panel_kernels PANEL_TABLE = {
    .name = PANEL_NAME,
    .matmul = matmul,
    .act_quantize = act_quantize_rows,
    .attn_q8_quantize = attn_q8_quantize_row,
    .attn_q8_scores = attn_q8_scores,
    .attn_q8_values = attn_q8_values,
};
