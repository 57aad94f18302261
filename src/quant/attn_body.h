/* attn_body.h: the two products of attention, for the heads that share one kv head; included by
 * kernels_body.h.
 *
 * Nothing is summed across lanes: of keys a lane is a position, of values a lane is a dimension. A
 * key or value is loaded (and widened) once for all the query heads of a tile. */

/* TILE_HEADS heads, or the `n` of a last, partial tile (its missing heads repeat the first; their
 * results are dropped). */
#define EACH_HEAD                                            \
    _Pragma("GCC unroll 8") for (int h = 0; h < TILE_HEADS; h++)

#define EACH_SLICE(x)                                        \
    _Pragma("GCC unroll 8") for (int x = 0; x < TILE_SLICES; x++)

static inline v16 load_kv(dtype type, const void *kv, int64_t i)
{
    return type == DTYPE_F16 ? v16_from_f16((const uint16_t *)kv + i)
                             : v16_load((const float *)kv + i);
}

static inline void scores_tile(dtype type, const void *k_block, const float *q, int64_t n_head,
                               int64_t d, float *scores, int64_t stride)
{
    v16 sum[TILE_HEADS];
    const float *qh[TILE_HEADS];

    EACH_HEAD
    {
        sum[h] = v16_set1(0);
        qh[h] = q + (h < n_head ? h * d : 0);
    }
    for (int64_t i = 0; i < d; i++) {
        const v16 key = load_kv(type, k_block, i * LANES);
        EACH_HEAD
        {
            sum[h] = v16_fma(key, v16_set1(qh[h][i]), sum[h]);
        }
    }
    EACH_HEAD
    {
        if (h < n_head) {
            v16_store(scores + h * stride, sum[h]);
        }
    }
}

static void attn_scores(dtype type, const void *k_blocks, const float *q, int64_t n_head, int64_t d,
                        int64_t n_blocks, float *scores, int64_t stride)
{
    const size_t block_bytes = (size_t)d * LANES * (type == DTYPE_F16 ? 2 : 4);

    for (int64_t b = 0; b < n_blocks; b++) {
        const uint8_t *block = (const uint8_t *)k_blocks + (size_t)b * block_bytes;
        for (int64_t h = 0; h < n_head; h += TILE_HEADS) {
            float *to = scores + h * stride + b * LANES;
            if (type == DTYPE_F16) {
                scores_tile(DTYPE_F16, block, q + h * d, n_head - h, d, to, stride);
            } else {
                scores_tile(DTYPE_F32, block, q + h * d, n_head - h, d, to, stride);
            }
        }
    }
}

enum { TILE_SLICES = TILE_HEADS / 2 };

/* TILE_SLICES times 16 dimensions from i on, of at most TILE_HEADS / 2 heads: as many accumulators
 * as of a tile of scores, and values are read in longer runs. */
static inline void values_wide(dtype type, const void *v, const float *p, int64_t stride,
                               int64_t n_head, int64_t d, int64_t n, int64_t i, float *out)
{
    v16 sum[TILE_SLICES][TILE_SLICES];
    const float *ph[TILE_SLICES];

    EACH_SLICE(h)
    {
        ph[h] = p + (h < n_head ? h * stride : 0);
        EACH_SLICE(s)
        {
            sum[h][s] = v16_set1(0);
        }
    }
    for (int64_t j = 0; j < n; j++) {
        v16 value[TILE_SLICES];
        EACH_SLICE(s)
        {
            value[s] = load_kv(type, v, j * d + i + s * LANES);
        }
        EACH_SLICE(h)
        {
            const v16 weight = v16_set1(ph[h][j]);
            EACH_SLICE(s)
            {
                sum[h][s] = v16_fma(weight, value[s], sum[h][s]);
            }
        }
    }
    EACH_SLICE(h)
    {
        EACH_SLICE(s)
        {
            if (h < n_head) {
                v16_store(out + h * d + i + s * LANES, sum[h][s]);
            }
        }
    }
}

/* Dimensions i .. i+m-1 (m <= 16) of the output of one tile of heads. */
static inline void values_tile(dtype type, const void *v, const float *p, int64_t stride,
                               int64_t n_head, int64_t d, int64_t n, int64_t i, float *out)
{
    const int64_t m = d - i;
    v16 sum[TILE_HEADS];
    const float *ph[TILE_HEADS];

    EACH_HEAD
    {
        sum[h] = v16_set1(0);
        ph[h] = p + (h < n_head ? h * stride : 0);
    }
    for (int64_t j = 0; j < n; j++) {
        v16 value;
        if (m >= LANES) {
            value = load_kv(type, v, j * d + i);
        } else if (type == DTYPE_F16) {
            value = load_f16_n((const uint16_t *)v + j * d + i, m);
        } else {
            value = load_n((const float *)v + j * d + i, m);
        }
        EACH_HEAD
        {
            sum[h] = v16_fma(v16_set1(ph[h][j]), value, sum[h]);
        }
    }
    EACH_HEAD
    {
        if (h < n_head) {
            store_n(out + h * d + i, sum[h], m);
        }
    }
}

static inline void values_of(dtype type, const void *v, const float *p, int64_t stride,
                             int64_t n_head, int64_t d, int64_t n, float *out)
{
    int64_t i = 0;

    for (; i + TILE_SLICES * LANES <= d; i += TILE_SLICES * LANES) {
        for (int64_t h = 0; h < n_head; h += TILE_SLICES) {
            values_wide(type, v, p + h * stride, stride, n_head - h, d, n, i, out + h * d);
        }
    }
    for (; i < d; i += LANES) {
        for (int64_t h = 0; h < n_head; h += TILE_HEADS) {
            values_tile(type, v, p + h * stride, stride, n_head - h, d, n, i, out + h * d);
        }
    }
}

static void attn_values(dtype type, const void *v, const float *p, int64_t stride, int64_t n_head,
                        int64_t d, int64_t n, float *out)
{
    if (type == DTYPE_F16) {
        values_of(DTYPE_F16, v, p, stride, n_head, d, n, out);
    } else {
        values_of(DTYPE_F32, v, p, stride, n_head, d, n, out);
    }
}
