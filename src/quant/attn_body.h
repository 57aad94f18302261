/* attn_body.h: the two products of attention, for all the queries that look at the keys and values
 * of one kv head; included by kernels_body.h.
 *
 * Nothing is summed across lanes: of keys a lane is a position, of values a lane is a dimension. A
 * run of keys or values is widened to floats once, into the L1 cache, for all the queries; these
 * then pass by in tiles of registers. A chain of additions that is longer than a run goes on from
 * the output: storing a float and loading it again changes nothing. */

#if defined(__clang__)
#define ATTN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define ATTN_UNROLL _Pragma("GCC unroll 16")
#endif
#define ATTN_INLINE static inline __attribute__((always_inline))

enum {
    KEY_DIMS = 128,        /* of a run of keys */
    VALUE_POSITIONS = 64,  /* of a run of values ... */
    VALUE_ROWS = TILE_ROWS / 2, VALUE_SLICES = TILE_ROWS / 2, /* ... and its tile: as many sums */
    VALUE_DIMS = VALUE_SLICES * LANES,
};

/* Element i of a plain type on; what lies one run ahead is asked for now. */
ATTN_INLINE v16 load_kv(dtype type, const void *kv, int64_t i, int64_t ahead)
{
    const size_t elem_bytes = type == DTYPE_F16 ? 2 : 4;
    const uint8_t *p = (const uint8_t *)kv + (size_t)i * elem_bytes;

    __builtin_prefetch(p + (size_t)ahead * elem_bytes);
    return type == DTYPE_F16 ? v16_from_f16(p) : v16_load(p);
}

/* ---- keys ---- */

typedef struct key_run {
    float k[TILE_STRIPES][KEY_DIMS][LANES];
} key_run;

/* Dimensions [first, first + n) of the keys of TILE_STRIPES blocks; past the last of n_blocks the
 * first again. */
ATTN_INLINE void widen_keys(dtype type, const void *blocks, int64_t d, int64_t n_blocks,
                            int64_t first, int64_t n, key_run *run)
{
    for (int s = 0; s < TILE_STRIPES; s++) {
        const int64_t from = ((s < n_blocks ? s : 0) * d + first) * LANES;
        for (int64_t i = 0; i < n; i++) {
            v16_store(run->k[s][i],
                      load_kv(type, blocks, from + i * LANES, TILE_STRIPES * d * LANES));
        }
    }
}

/* n_rows (a constant) queries; scores holds what the dimensions before `first` gave. */
ATTN_INLINE void scores_tile(int n_rows, const key_run *run, const float *q, int64_t d,
                             int64_t first, int64_t n, int64_t n_blocks, float *scores,
                             int64_t stride)
{
    v16 sum[TILE_ROWS][TILE_STRIPES];

    ATTN_UNROLL
    for (int r = 0; r < n_rows; r++) {
        ATTN_UNROLL
        for (int s = 0; s < TILE_STRIPES; s++) {
            sum[r][s] = first > 0 && s < n_blocks ? v16_load(scores + r * stride + s * LANES)
                                                  : v16_set1(0);
        }
    }
    for (int64_t i = 0; i < n; i++) {
        v16 key[TILE_STRIPES];
        ATTN_UNROLL
        for (int s = 0; s < TILE_STRIPES; s++) {
            key[s] = v16_load(run->k[s][i]);
        }
        ATTN_UNROLL
        for (int r = 0; r < n_rows; r++) {
            const v16 query = v16_set1(q[r * d + first + i]);
            ATTN_UNROLL
            for (int s = 0; s < TILE_STRIPES; s++) {
                sum[r][s] = v16_fma(key[s], query, sum[r][s]);
            }
        }
    }
    ATTN_UNROLL
    for (int r = 0; r < n_rows; r++) {
        ATTN_UNROLL
        for (int s = 0; s < TILE_STRIPES; s++) {
            if (s < n_blocks) {
                v16_store(scores + r * stride + s * LANES, sum[r][s]);
            }
        }
    }
}

ATTN_INLINE void scores_of(dtype type, const void *k_blocks, const float *q, int64_t n_rows,
                           int64_t d, int64_t n_blocks, float *scores, int64_t stride)
{
    const size_t block_bytes = (size_t)d * LANES * (type == DTYPE_F16 ? 2 : 4);
    key_run run __attribute__((aligned(64)));

    for (int64_t b = 0; b < n_blocks; b += TILE_STRIPES) {
        const uint8_t *blocks = (const uint8_t *)k_blocks + (size_t)b * block_bytes;
        const int64_t left = n_blocks - b;
        for (int64_t first = 0; first < d; first += KEY_DIMS) {
            const int64_t n = d - first < KEY_DIMS ? d - first : KEY_DIMS;
            float *to = scores + b * LANES;
            int64_t r = 0;
            widen_keys(type, blocks, d, left, first, n, &run);
            for (; r + TILE_ROWS <= n_rows; r += TILE_ROWS) {
                scores_tile(TILE_ROWS, &run, q + r * d, d, first, n, left, to + r * stride,
                            stride);
            }
            for (; r + TILE_ROWS / 2 <= n_rows; r += TILE_ROWS / 2) {
                scores_tile(TILE_ROWS / 2, &run, q + r * d, d, first, n, left, to + r * stride,
                            stride);
            }
            for (; r < n_rows; r++) {
                scores_tile(1, &run, q + r * d, d, first, n, left, to + r * stride, stride);
            }
        }
    }
}

static void attn_scores(dtype type, const void *k_blocks, const float *q, int64_t n_rows, int64_t d,
                        int64_t n_blocks, float *scores, int64_t stride)
{
    if (type == DTYPE_F16) {
        scores_of(DTYPE_F16, k_blocks, q, n_rows, d, n_blocks, scores, stride);
    } else {
        scores_of(DTYPE_F32, k_blocks, q, n_rows, d, n_blocks, scores, stride);
    }
}

/* ---- values ---- */

typedef struct value_run {
    float v[VALUE_POSITIONS][VALUE_DIMS];
} value_run;

/* Sixteen dimensions from i on, of which m exist (more than 16: all), of a row of values. */
ATTN_INLINE v16 value_slice(dtype type, const uint8_t *row, int64_t i, int64_t m, int64_t ahead)
{
    if (m >= LANES) {
        return load_kv(type, row, i, ahead);
    }
    return type == DTYPE_F16 ? load_f16_n((const uint16_t *)(const void *)row + i, m)
                             : load_n((const float *)(const void *)row + i, m);
}

/* VALUE_DIMS dimensions from i on of n rows; those past d are zero. */
ATTN_INLINE void widen_values(dtype type, const uint8_t *rows, size_t row_bytes, int64_t d,
                              int64_t i, int64_t n, value_run *run)
{
    for (int64_t j = 0; j < n; j++) {
        ATTN_UNROLL
        for (int s = 0; s < VALUE_SLICES; s++) {
            const int64_t at = i + s * LANES;
            v16_store(run->v[j] + s * LANES,
                      at < d ? value_slice(type, rows + (size_t)j * row_bytes, at, d - at,
                                           VALUE_POSITIONS * d)
                             : v16_set1(0));
        }
    }
}

/* n_rows (a constant) queries with weights p; m dimensions exist. */
ATTN_INLINE void values_tile(int n_rows, const value_run *run, const float *p, int64_t stride,
                             int64_t n, float *out, int64_t d, int64_t m)
{
    v16 sum[VALUE_ROWS][VALUE_SLICES];

    ATTN_UNROLL
    for (int r = 0; r < n_rows; r++) {
        ATTN_UNROLL
        for (int s = 0; s < VALUE_SLICES; s++) {
            sum[r][s] = s * LANES < m ? load_n(out + r * d + s * LANES, m - s * LANES)
                                      : v16_set1(0);
        }
    }
    for (int64_t j = 0; j < n; j++) {
        v16 value[VALUE_SLICES];
        ATTN_UNROLL
        for (int s = 0; s < VALUE_SLICES; s++) {
            value[s] = v16_load(run->v[j] + s * LANES);
        }
        ATTN_UNROLL
        for (int r = 0; r < n_rows; r++) {
            const v16 weight = v16_set1(p[r * stride + j]);
            ATTN_UNROLL
            for (int s = 0; s < VALUE_SLICES; s++) {
                sum[r][s] = v16_fma(weight, value[s], sum[r][s]);
            }
        }
    }
    ATTN_UNROLL
    for (int r = 0; r < n_rows; r++) {
        ATTN_UNROLL
        for (int s = 0; s < VALUE_SLICES; s++) {
            if (s * LANES < m) {
                store_n(out + r * d + s * LANES, sum[r][s], m - s * LANES);
            }
        }
    }
}

ATTN_INLINE void values_of(dtype type, size_t row_bytes, const uint8_t *v, const float *p,
                           int64_t stride, int64_t n_rows, int64_t d, int64_t n, float *out)
{
    value_run run __attribute__((aligned(64)));

    for (int64_t first = 0; first < n; first += VALUE_POSITIONS) {
        const int64_t n_run = n - first < VALUE_POSITIONS ? n - first : VALUE_POSITIONS;
        for (int64_t i = 0; i < d; i += VALUE_DIMS) {
            int64_t r = 0;
            widen_values(type, v + (size_t)first * row_bytes, row_bytes, d, i, n_run, &run);
            for (; r + VALUE_ROWS <= n_rows; r += VALUE_ROWS) {
                values_tile(VALUE_ROWS, &run, p + r * stride + first, stride, n_run,
                            out + r * d + i, d, d - i);
            }
            for (; r < n_rows; r++) {
                values_tile(1, &run, p + r * stride + first, stride, n_run, out + r * d + i, d,
                            d - i);
            }
        }
    }
}

static void attn_values(dtype type, const void *v, const float *p, int64_t stride, int64_t n_rows,
                        int64_t d, int64_t n, float *out)
{
    const size_t row_bytes = (size_t)dtype_row_bytes(type, (uint64_t)d);

    if (type == DTYPE_F16) {
        values_of(DTYPE_F16, row_bytes, v, p, stride, n_rows, d, n, out);
    } else {
        values_of(DTYPE_F32, row_bytes, v, p, stride, n_rows, d, n, out);
    }
}
