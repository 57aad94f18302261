/* plain_body.h: rows of a plain type times vectors, for kernels_body.h.
 *
 * The one idea: a tile of rows and vectors keeps the 16 partial sums of each of its products in
 * registers. One vector: two rows, because the additions of one row wait for each other, and half
 * of all rows apart, so that memory is read as two long runs: of neighbours each run would end
 * with its row, which is about a page, and the hardware's prefetch with it. Many: BLOCK_COLS
 * columns of a tile's rows are widened into the L1 cache once, and a chunk of vectors passes by
 * them from the L2 cache. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 24")
#endif
#define TILE static inline __attribute__((always_inline))

enum {
    N_STREAMS = 2, /* runs of rows that one vector passes at the same time */
    LINE_BYTES = 64,
    AHEAD_BYTES = 4096, /* of each run, what is prefetched: 2 to 5 KiB are alike */
    N_CHUNK = 96, /* vectors that share one widening */
    BLOCK_COLS = 512,
};

typedef struct plain_job {
    const uint8_t *rows;
    size_t row_bytes;
    int64_t n_rows, cols;
    const float *x;
    int64_t x_stride, n_x;
    float *out;
    int64_t out_stride;
} plain_job;

/* ---- one vector ---- */

/* `type` and the counts of a tile are constants wherever these are called. */
TILE v16 plain_load(dtype type, const uint8_t *row, int64_t k)
{
    return type == DTYPE_F32    ? v16_load(row + 4 * k)
           : type == DTYPE_BF16 ? v16_from_bf16(row + 2 * k)
                                : v16_from_f16(row + 2 * k);
}

/* The last m < LANES columns. */
static v16 plain_tail(dtype type, const uint8_t *row, int64_t k, int64_t m)
{
    const size_t width = type == DTYPE_F32 ? 4 : 2;
    uint8_t padded[LANES * sizeof(float)] = {0};

    memcpy(padded, row + (size_t)k * width, (size_t)m * width);
    return plain_load(type, padded, 0);
}

/* 16 columns of the tile's rows, w[0] and on. */
TILE void add_lanes(dtype type, int n_rows, const uint8_t *const w[], const float *x, int64_t k,
                    v16 sums[])
{
    const v16 xk = v16_load(x + k);

    UNROLL
    for (int r = 0; r < n_rows; r++) {
        sums[r] = v16_fma(plain_load(type, w[r], k), xk, sums[r]);
    }
}

/* Row `row` of each of n_streams (a constant) runs of `apart` rows. */
TILE void stream_rows(dtype type, int n_streams, const plain_job *j, int64_t row, int64_t apart)
{
    const int64_t line_cols = LINE_BYTES / (type == DTYPE_F32 ? 4 : 2);
    const uint8_t *w[N_STREAMS];
    v16 sums[N_STREAMS];
    int64_t k = 0;

    UNROLL
    for (int r = 0; r < n_streams; r++) {
        w[r] = j->rows + (size_t)(row + r * apart) * j->row_bytes;
        sums[r] = v16_set1(0);
    }
    for (; k + line_cols <= j->cols; k += line_cols) {
        UNROLL
        for (int r = 0; r < n_streams; r++) {
            __builtin_prefetch(w[r] + k / line_cols * LINE_BYTES + AHEAD_BYTES);
        }
        for (int64_t in_line = 0; in_line < line_cols; in_line += LANES) {
            add_lanes(type, n_streams, w, j->x, k + in_line, sums);
        }
    }
    for (; k + LANES <= j->cols; k += LANES) {
        add_lanes(type, n_streams, w, j->x, k, sums);
    }
    const int64_t m = j->cols - k;
    UNROLL
    for (int r = 0; r < n_streams; r++) {
        if (m > 0) {
            const v16 wk = plain_tail(type, w[r], k, m);
            sums[r] = merge_n(v16_fma(wk, load_n(j->x + k, m), sums[r]), sums[r], m);
        }
        j->out[row + r * apart] = v16_reduce(sums[r]);
    }
}

TILE void plain_vector(dtype type, const plain_job *j)
{
    const int64_t n = j->n_rows / N_STREAMS;

    for (int64_t row = 0; row < n; row++) {
        stream_rows(type, N_STREAMS, j, row, n);
    }
    for (int64_t row = n * N_STREAMS; row < j->n_rows; row++) {
        stream_rows(type, 1, j, row, 0);
    }
}

/* ---- many vectors ---- */

/* Of a tile's rows: a block of columns as floats, and the partial sums of a chunk of vectors. */
typedef struct wide_rows {
    float w[PLAIN_ROWS][BLOCK_COLS];
    float sums[N_CHUNK][PLAIN_ROWS][LANES];
} wide_rows;

/* n columns from x on, times n_x vectors from v on. */
TILE void wide_tile(int n_rows, int n_x, const plain_job *j, const float *x, int64_t n,
                    wide_rows *t, int64_t v)
{
    v16 sums[PLAIN_VECTORS * PLAIN_ROWS];
    int64_t k = 0;

    UNROLL
    for (int i = 0; i < n_x * n_rows; i++) {
        sums[i] = v16_load(t->sums[v + i / n_rows][i % n_rows]);
    }
    for (; k + LANES <= n; k += LANES) {
        v16 xk[PLAIN_VECTORS];
        UNROLL
        for (int i = 0; i < n_x; i++) {
            xk[i] = v16_load(x + i * j->x_stride + k);
        }
        UNROLL
        for (int r = 0; r < n_rows; r++) {
            v16 wk = v16_load(t->w[r] + k);
            IN_REGISTERS(wk);
            UNROLL
            for (int i = 0; i < n_x; i++) {
                sums[i * n_rows + r] = v16_fma(wk, xk[i], sums[i * n_rows + r]);
            }
        }
    }
    UNROLL
    for (int i = 0; i < n_x * n_rows; i++) {
        if (k < n) {
            const v16 xk = load_n(x + i / n_rows * j->x_stride + k, n - k);
            const v16 wk = load_n(t->w[i % n_rows] + k, n - k);
            sums[i] = merge_n(v16_fma(wk, xk, sums[i]), sums[i], n - k);
        }
        v16_store(t->sums[v + i / n_rows][i % n_rows], sums[i]);
    }
}

/* n_rows (a constant) rows times n_x <= N_CHUNK vectors from `first` on. */
TILE void many_vectors(int n_rows, dtype type, const plain_job *j, int64_t row, int64_t first,
                       int64_t n_x)
{
    const uint8_t *w = j->rows + (size_t)row * j->row_bytes;
    wide_rows t __attribute__((aligned(64)));

    memset(t.sums, 0, (size_t)n_x * sizeof(t.sums[0]));
    for (int64_t k = 0; k < j->cols; k += BLOCK_COLS) {
        const int64_t n = j->cols - k < BLOCK_COLS ? j->cols - k : BLOCK_COLS;
        const float *x = j->x + first * j->x_stride + k;
        int64_t v = 0;
        for (int r = 0; r < n_rows; r++) {
            const uint8_t *from = w + (size_t)r * j->row_bytes + (type == DTYPE_F32 ? 4 : 2) * k;
            dequantize_row(type, from, t.w[r], n);
        }
        for (; v + PLAIN_VECTORS <= n_x; v += PLAIN_VECTORS) {
            wide_tile(n_rows, PLAIN_VECTORS, j, x + v * j->x_stride, n, &t, v);
        }
        for (; v < n_x; v++) {
            wide_tile(n_rows, 1, j, x + v * j->x_stride, n, &t, v);
        }
    }
    for (int64_t v = 0; v < n_x; v++) {
        for (int r = 0; r < n_rows; r++) {
            j->out[(first + v) * j->out_stride + row + r] = v16_reduce(v16_load(t.sums[v][r]));
        }
    }
}

/* A chunk of vectors stays in the L2 cache while the rows pass by. */
static void plain_matrix(dtype type, const plain_job *j)
{
    for (int64_t first = 0; first < j->n_x; first += N_CHUNK) {
        const int64_t n_x = j->n_x - first < N_CHUNK ? j->n_x - first : N_CHUNK;
        int64_t row = 0;
        for (; row + PLAIN_ROWS <= j->n_rows; row += PLAIN_ROWS) {
            many_vectors(PLAIN_ROWS, type, j, row, first, n_x);
        }
        for (; row < j->n_rows; row++) {
            many_vectors(1, type, j, row, first, n_x);
        }
    }
}

/* ---- the entry ---- */

static void vector_f32(const plain_job *j) { plain_vector(DTYPE_F32, j); }
static void vector_f16(const plain_job *j) { plain_vector(DTYPE_F16, j); }
static void vector_bf16(const plain_job *j) { plain_vector(DTYPE_BF16, j); }

/* The caller has asked for the type: of others nothing is written. */
static void matmul_plain(dtype type, const void *rows, int64_t n_rows, int64_t cols, const float *x,
                         int64_t x_stride, int64_t n_x, float *out, int64_t out_stride)
{
    const plain_job j = {rows, (size_t)cols * (type == DTYPE_F32 ? 4 : 2), n_rows, cols, x,
                         x_stride, n_x, out, out_stride};

    switch (type) {
    case DTYPE_F32: (n_x == 1 ? vector_f32(&j) : plain_matrix(type, &j)); break;
    case DTYPE_F16: (n_x == 1 ? vector_f16(&j) : plain_matrix(type, &j)); break;
    case DTYPE_BF16: (n_x == 1 ? vector_bf16(&j) : plain_matrix(type, &j)); break;
    default: break;
    }
}
