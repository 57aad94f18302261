/* attn_body.h: the two products of attention, for all the queries that look at the keys and values
 * of one kv head; included by kernels_body.h.
 *
 * Nothing is summed across lanes: of keys a lane is a position, of values a lane is a dimension.
 * Queries pass by in tiles of registers, and f16 is widened on its way into each: a copy in floats
 * for all the tiles takes longer to write than it saves. Of values, a run of positions is finished
 * before the next, and its sums go on from the output: storing a float and loading it again
 * changes nothing. */

#if defined(__clang__)
#define ATTN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define ATTN_UNROLL _Pragma("GCC unroll 16")
#endif
#define ATTN_INLINE static inline __attribute__((always_inline))

enum { VALUE_POSITIONS = 64 }; /* of a run: the L1 cache holds it */

ATTN_INLINE size_t plain_bytes(dtype type) { return type == DTYPE_F16 ? 2 : 4; }

ATTN_INLINE v16 load_plain(dtype type, const uint8_t *p)
{
    return type == DTYPE_F16 ? v16_from_f16(p) : v16_load(p);
}

/* ---- keys ---- */

/* n_rows (a constant) queries times the keys of TILE_STRIPES blocks, of which `left` exist; the
 * missing repeat the first. */
ATTN_INLINE void scores_tile(int n_rows, dtype type, const uint8_t *blocks, int64_t left,
                             const float *q, int64_t d, float *scores, int64_t stride)
{
    const size_t lane_bytes = LANES * plain_bytes(type), block_bytes = (size_t)d * lane_bytes;
    const uint8_t *keys[TILE_STRIPES];
    v16 sum[TILE_ROWS][TILE_STRIPES];

    ATTN_UNROLL
    for (int s = 0; s < TILE_STRIPES; s++) {
        keys[s] = blocks + (s < left ? (size_t)s * block_bytes : 0);
        ATTN_UNROLL
        for (int r = 0; r < n_rows; r++) {
            sum[r][s] = v16_set1(0);
        }
    }
    for (int64_t i = 0; i < d; i++) {
        v16 key[TILE_STRIPES];
        ATTN_UNROLL
        for (int s = 0; s < TILE_STRIPES; s++) {
            key[s] = load_plain(type, keys[s]);
            __builtin_prefetch(keys[s] + ATTN_AHEAD / LANES * block_bytes);
            keys[s] += lane_bytes;
        }
        ATTN_UNROLL
        for (int r = 0; r < n_rows; r++) {
            const v16 query = v16_set1(q[r * d + i]);
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
            if (s < left) {
                v16_store(scores + r * stride + s * LANES, sum[r][s]);
            }
        }
    }
}

ATTN_INLINE void scores_of(dtype type, const uint8_t *blocks, const float *q, int64_t n_rows,
                           int64_t d, int64_t n_blocks, float *scores, int64_t stride)
{
    const size_t block_bytes = (size_t)d * LANES * plain_bytes(type);

    for (int64_t b = 0; b < n_blocks; b += TILE_STRIPES) {
        const uint8_t *some = blocks + (size_t)b * block_bytes;
        float *to = scores + b * LANES;
        int64_t r = 0;
        for (; r + TILE_ROWS <= n_rows; r += TILE_ROWS) {
            scores_tile(TILE_ROWS, type, some, n_blocks - b, q + r * d, d, to + r * stride, stride);
        }
        for (; r + TILE_ROWS / 2 <= n_rows; r += TILE_ROWS / 2) {
            scores_tile(TILE_ROWS / 2, type, some, n_blocks - b, q + r * d, d, to + r * stride,
                        stride);
        }
        for (; r < n_rows; r++) {
            scores_tile(1, type, some, n_blocks - b, q + r * d, d, to + r * stride, stride);
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

enum { VALUE_DIMS = TILE_STRIPES * LANES }; /* of a tile */

/* Sixteen dimensions of a row of values, of which m exist (fewer than 1: none). */
ATTN_INLINE v16 value_slice(dtype type, const uint8_t *p, int64_t m)
{
    if (m >= LANES) {
        return load_plain(type, p);
    }
    if (m <= 0) {
        return v16_set1(0);
    }
    return type == DTYPE_F16 ? load_f16_n((const uint16_t *)(const void *)p, m)
                             : load_n((const float *)(const void *)p, m);
}

/* n_rows (a constant) queries with weights p, at n positions; of VALUE_DIMS dimensions m exist. */
ATTN_INLINE void values_tile(int n_rows, dtype type, const uint8_t *values, size_t row_bytes,
                             const float *p, int64_t stride, int64_t n, float *out, int64_t d,
                             int64_t m)
{
    v16 sum[TILE_ROWS][TILE_STRIPES];

    ATTN_UNROLL
    for (int r = 0; r < n_rows; r++) {
        ATTN_UNROLL
        for (int s = 0; s < TILE_STRIPES; s++) {
            sum[r][s] = s * LANES < m ? load_n(out + r * d + s * LANES, m - s * LANES)
                                      : v16_set1(0);
        }
    }
    for (int64_t j = 0; j < n; j++, values += row_bytes) {
        v16 value[TILE_STRIPES];
        __builtin_prefetch(values + ATTN_AHEAD * row_bytes);
        ATTN_UNROLL
        for (int s = 0; s < TILE_STRIPES; s++) {
            value[s] = value_slice(type, values + (size_t)(s * LANES) * plain_bytes(type),
                                   m - s * LANES);
        }
        ATTN_UNROLL
        for (int r = 0; r < n_rows; r++) {
            const v16 weight = v16_set1(p[r * stride + j]);
            ATTN_UNROLL
            for (int s = 0; s < TILE_STRIPES; s++) {
                sum[r][s] = v16_fma(weight, value[s], sum[r][s]);
            }
        }
    }
    ATTN_UNROLL
    for (int r = 0; r < n_rows; r++) {
        ATTN_UNROLL
        for (int s = 0; s < TILE_STRIPES; s++) {
            if (s * LANES < m) {
                store_n(out + r * d + s * LANES, sum[r][s], m - s * LANES);
            }
        }
    }
}

/* All queries. Called with a constant m for whole tiles. */
ATTN_INLINE void values_run(dtype type, const uint8_t *values, size_t row_bytes, const float *p,
                            int64_t stride, int64_t n_rows, int64_t n, float *out, int64_t d,
                            int64_t m)
{
    int64_t r = 0;

    for (; r + TILE_ROWS <= n_rows; r += TILE_ROWS) {
        values_tile(TILE_ROWS, type, values, row_bytes, p + r * stride, stride, n, out + r * d, d,
                    m);
    }
    for (; r + TILE_ROWS / 2 <= n_rows; r += TILE_ROWS / 2) {
        values_tile(TILE_ROWS / 2, type, values, row_bytes, p + r * stride, stride, n, out + r * d,
                    d, m);
    }
    for (; r < n_rows; r++) {
        values_tile(1, type, values, row_bytes, p + r * stride, stride, n, out + r * d, d, m);
    }
}

ATTN_INLINE void values_of(dtype type, const uint8_t *v, const float *p, int64_t stride,
                           int64_t n_rows, int64_t d, int64_t n, float *out)
{
    const size_t row_bytes = (size_t)d * plain_bytes(type);

    for (int64_t first = 0; first < n; first += VALUE_POSITIONS) {
        const int64_t n_run = n - first < VALUE_POSITIONS ? n - first : VALUE_POSITIONS;
        const uint8_t *run = v + (size_t)first * row_bytes;
        int64_t i = 0;
        for (; i + VALUE_DIMS <= d; i += VALUE_DIMS) {
            values_run(type, run + (size_t)i * plain_bytes(type), row_bytes, p + first, stride,
                       n_rows, n_run, out + i, d, VALUE_DIMS);
        }
        if (i < d) {
            values_run(type, run + (size_t)i * plain_bytes(type), row_bytes, p + first, stride,
                       n_rows, n_run, out + i, d, d - i);
        }
    }
}

static void attn_values(dtype type, const void *v, const float *p, int64_t stride, int64_t n_rows,
                        int64_t d, int64_t n, float *out)
{
    if (type == DTYPE_F16) {
        values_of(DTYPE_F16, v, p, stride, n_rows, d, n, out);
    } else {
        values_of(DTYPE_F32, v, p, stride, n_rows, d, n, out);
    }
}
