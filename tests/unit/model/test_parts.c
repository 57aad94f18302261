/* test_parts.c: the parts of the forward pass that have a closed form: rotary tables, the router, a
 * matrix product. The whole of it is compared with the reference by tests/e2e/test_golden.py. */
#include "../../support/test.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/mem.h"
#include "model/attention.h"
#include "model/matmul.h"
#include "model/rope.h"
#include "model/router.h"
#include "quant/quant.h"

static void test_default_frequencies(void **state)
{
    (void)state;
    const rope_config rope = {.kind = ROPE_DEFAULT, .theta = 1e6, .attention_factor = 1};
    float f[64], c[64], s[64];
    rope_frequencies(&rope, 128, f);
    assert_true(f[0] == 1);
    for (int i = 0; i < 64; i++) {
        double want = pow(1e6, -2.0 * i / 128);
        assert_true(fabs(f[i] - want) <= 1e-6 * want);
    }
    rope_cos_sin(&rope, f, 128, 0, c, s);
    for (int i = 0; i < 64; i++) {
        assert_true(c[i] == 1 && s[i] == 0);
    }
    rope_cos_sin(&rope, f, 128, 40000, c, s);
    for (int i = 0; i < 64; i++) {
        assert_true(fabs(c[i] - cos((float)40000 * f[i])) < 1e-6);
        assert_true(fabs(s[i] - sin((float)40000 * f[i])) < 1e-6);
    }
}

static void test_linear_is_default_divided(void **state)
{
    (void)state;
    rope_config rope = {.kind = ROPE_DEFAULT, .theta = 1e4, .factor = 4, .attention_factor = 1};
    float plain[16], scaled[16];
    rope_frequencies(&rope, 32, plain);
    rope.kind = ROPE_LINEAR;
    rope_frequencies(&rope, 32, scaled);
    for (int i = 0; i < 16; i++) {
        assert_true(scaled[i] == plain[i] / 4);
    }
}

static void test_rotation_keeps_length_and_order(void **state)
{
    (void)state;
    const float c[2] = {0.6f, 0}, s[2] = {0.8f, 1};
    float head[4] = {1, 2, 3, 4};
    kernels_get(NULL)->rope(head, c, s, 2); /* pairs (0, 2) and (1, 3) */
    assert_true(fabsf(head[0] - (1 * 0.6f - 3 * 0.8f)) < 1e-6f);
    assert_true(fabsf(head[2] - (3 * 0.6f + 1 * 0.8f)) < 1e-6f);
    assert_true(head[1] == -4 && head[3] == 2);
}

static void test_router(void **state)
{
    (void)state;
    const kernels *k = kernels_get(NULL);
    uint32_t experts[4];
    float shares[4];
    float logits[6] = {0, 3, 1, 3, -2, 2};
    assert_true(router_select(k, logits, 6, 3, true, experts, shares));
    assert_int_equal(experts[0], 1); /* of equals the lower index first */
    assert_int_equal(experts[1], 3);
    assert_int_equal(experts[2], 5);
    assert_true(shares[0] == shares[1] && shares[1] > shares[2]);
    assert_true(fabsf(shares[0] + shares[1] + shares[2] - 1) < 1e-6f);

    float again[6] = {0, 3, 1, 3, -2, 2};
    assert_true(router_select(k, again, 6, 3, false, experts, shares));
    double sum = 1 + 2 * exp(3) + exp(1) + exp(-2) + exp(2);
    assert_true(fabs(shares[0] - exp(3) / sum) < 1e-6);
    assert_true(fabs(shares[2] - exp(2) / sum) < 1e-6);

    float all[4] = {-1e30f, 5, -1e30f, -1e30f}; /* zeros are still in order */
    assert_true(router_select(k, all, 4, 4, true, experts, shares));
    assert_int_equal(experts[0], 1);
    assert_int_equal(experts[1], 0);
    assert_int_equal(experts[3], 3);
}

static void test_router_refuses_what_is_not_finite(void **state)
{
    (void)state;
    const kernels *k = kernels_get(NULL);
    uint32_t experts[2];
    float shares[2];
    float nan[3] = {0, NAN, 1}, inf[3] = {0, INFINITY, 1}, minus[2] = {-INFINITY, -INFINITY};
    assert_false(router_select(k, nan, 3, 2, true, experts, shares));
    assert_false(router_select(k, inf, 3, 2, true, experts, shares));
    assert_false(router_select(k, minus, 2, 1, true, experts, shares));
}

enum { ROWS = 37, COLS = 512, N = 5, STORED_ROWS = 48 };

/* Quantises w [ROWS][COLS] as the files store it; plain gets what it decodes to. */
static matrix stored_matrix(dtype type, const float *w, uint8_t *data, float *plain)
{
    static uint8_t rows[ROWS * COLS * 4];
    uint64_t row_bytes = dtype_row_bytes(type, COLS);
    bool in_panels = dtype_get(type)->is_quantized;
    for (size_t row = 0; row < ROWS; row++) {
        quantize_row_ref(type, w + row * COLS, rows + row * row_bytes, COLS);
        dequantize_row_ref(type, rows + row * row_bytes, plain + row * COLS, COLS);
    }
    if (in_panels) {
        panel_pack(type, rows, ROWS, COLS, data);
    } else {
        memcpy(data, rows, ROWS * row_bytes);
    }
    return (matrix){type, ROWS, COLS, row_bytes, in_panels, data};
}

static void fill(rng *r, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)rng_uniform(r) - 0.5f;
    }
}

/* Two parts in one pass: a batch equals single calls, whatever the threads; both equal the plain
 * sum to what the activations' format allows. Odd rounds: the activations are shared with a matrix
 * of another kind. */
static void test_matmul(void **state)
{
    (void)state;
    static const dtype types[] = {DTYPE_F32, DTYPE_BF16, DTYPE_Q8_0, DTYPE_Q4_K};
    static float w[ROWS * COLS], plain[ROWS * COLS], x[N * COLS], bias[ROWS], batch[2][N * ROWS],
        single[ROWS];
    static uint8_t data[STORED_ROWS * COLS * 4];
    static act_block act[N * COLS / ACT_ELEMS];
    rng r = {3};
    fill(&r, w, ROWS * COLS);
    fill(&r, x, N * COLS);
    fill(&r, bias, ROWS);
    for (size_t i = 0; i < 2 * 3 * sizeof types / sizeof types[0]; i++) {
        matrix m = stored_matrix(types[i / 6], w, data, plain);
        unsigned takers = matrix_takes(&m);
        double tolerance = m.in_panels ? 0.1 : 1e-4;
        smoe_err err;
        compute c = {.k = kernels_get(NULL), .panel = panel_kernels_get(NULL)};
        activations a = {.act = act};
        const matmul_part parts[] = {{&m, NULL, batch[0]}, {&m, bias, batch[1]}};
        ASSERT_OK(pool_new(1 + (uint32_t)(i / 2 % 3), &c.pool, &err), &err);
        takers |= i % 2 == 0 ? 0 : m.in_panels ? TAKES_SCALES_OF_256 : TAKES_SCALES_OF_32;
        activations_set(&c, &a, takers, x, N, COLS);
        matmul(&c, &a, parts, 2);
        for (size_t j = 0; j < N; j++) {
            activations_set(&c, &a, takers, x + j * COLS, 1, COLS);
            matmul(&c, &a, &(matmul_part){&m, NULL, single}, 1);
            assert_memory_equal(single, batch[0] + j * ROWS, sizeof single);
            for (size_t row = 0; row < ROWS; row++) {
                double want = 0;
                for (size_t k = 0; k < COLS; k++) {
                    want += (double)plain[row * COLS + k] * x[j * COLS + k];
                }
                assert_true(fabs(single[row] - want) < tolerance);
                assert_true(batch[1][j * ROWS + row] == single[row] + bias[row]);
            }
        }
        pool_free(c.pool);
    }
}

/* A row of the embedding comes out of its panel as it went in. */
static void test_matrix_row(void **state)
{
    (void)state;
    static float w[ROWS * COLS], plain[ROWS * COLS], row[COLS];
    static uint8_t data[STORED_ROWS * COLS * 4], blocks[16 * COLS * 4];
    rng r = {4};
    fill(&r, w, ROWS * COLS);
    for (size_t t = 0; t < 2; t++) {
        matrix m = stored_matrix(t ? DTYPE_Q8_0 : DTYPE_BF16, w, data, plain);
        for (uint64_t i = 0; i < ROWS; i++) {
            matrix_row(&m, kernels_get(NULL), i, blocks, row);
            assert_memory_equal(row, plain + i * COLS, sizeof row);
        }
    }
}

enum { CTX = 600, HEADS = 6, HEADS_KV = 2, MAX_DIM = 64 };

/* What attention() computes, in double and in the plain order. */
static void attention_plain(size_t dim, const float *k, const float *v, const float *q,
                            uint32_t position, uint32_t head, double *out)
{
    static double p[CTX];
    double max = -1e300, sum = 0;
    size_t kv_head = head / (HEADS / HEADS_KV);
    for (uint32_t j = 0; j <= position; j++) {
        p[j] = 0;
        for (size_t i = 0; i < dim; i++) {
            p[j] += (double)q[head * dim + i] * k[(j * HEADS_KV + kv_head) * dim + i];
        }
        p[j] /= sqrt((double)dim);
        max = fmax(max, p[j]);
    }
    for (size_t i = 0; i < dim; i++) {
        out[i] = 0;
    }
    for (uint32_t j = 0; j <= position; j++) {
        p[j] = exp(p[j] - max);
        sum += p[j];
        for (size_t i = 0; i < dim; i++) {
            out[i] += p[j] * v[(j * HEADS_KV + kv_head) * dim + i];
        }
    }
    for (size_t i = 0; i < dim; i++) {
        out[i] /= sum;
    }
}

/* One layer with room for CTX positions, on its own threads. */
typedef struct attention_rig {
    model_config cfg;
    kv_cache kv;
    compute c;
    attention_scratch scratch;
} attention_rig;

static void rig_init(attention_rig *rig, const char *isa, uint32_t dim, dtype type,
                     uint32_t n_threads)
{
    smoe_err err;
    *rig = (attention_rig){.cfg = {.n_layer = 1, .n_head = HEADS, .n_head_kv = HEADS_KV,
                                   .n_embd_head = dim},
                           .c = {.k = kernels_get(isa), .panel = panel_kernels_get(isa)}};
    rig->scratch = (attention_scratch){mem_alloc(n_threads * attention_thread_bytes(&rig->cfg)),
                                       mem_alloc(attention_token_bytes(&rig->cfg, CTX))};
    ASSERT_OK(pool_new(n_threads, &rig->c.pool, &err), &err);
    ASSERT_OK(kv_cache_check(&rig->cfg, type, &err), &err);
    ASSERT_OK(kv_cache_init(&rig->kv, &rig->cfg, type, CTX, &err), &err);
}

static void rig_fini(attention_rig *rig)
{
    kv_cache_fini(&rig->kv);
    pool_free(rig->c.pool);
    mem_free(rig->scratch.threads);
    mem_free(rig->scratch.token);
}

/* Positions [from, to) in chunks of n_chunk; out [CTX][HEADS * dim] gets theirs. */
static void attend(attention_rig *rig, uint32_t from, uint32_t to, uint32_t n_chunk, const float *k,
                   const float *v, const float *q, float *out)
{
    uint32_t dim = rig->cfg.n_embd_head;
    for (uint32_t at = from; at < to; at += n_chunk) {
        uint32_t n = to - at < n_chunk ? to - at : n_chunk;
        attention_store(&rig->c, &rig->kv, 0, at, n, k + (size_t)at * HEADS_KV * dim,
                        v + (size_t)at * HEADS_KV * dim);
        attention(&rig->c, &rig->kv, 0, &rig->cfg, at, n, q + (size_t)at * HEADS * dim,
                  &rig->scratch, out + (size_t)at * HEADS * dim);
    }
}

static float K[CTX * HEADS_KV * MAX_DIM], V[CTX * HEADS_KV * MAX_DIM], Q[CTX * HEADS * MAX_DIM];
static float WANT[CTX * HEADS * MAX_DIM], GOT[CTX * HEADS * MAX_DIM];

static const struct {
    uint32_t dim;
    dtype type;
    double tolerance;
} CACHES[] = {{24, DTYPE_F32, 1e-6}, {24, DTYPE_F16, 1e-3}, {64, DTYPE_F16, 1e-3},
              {32, DTYPE_Q8_0, 1e-2}, {64, DTYPE_Q8_0, 1e-2}};
enum { N_CACHES = sizeof CACHES / sizeof *CACHES };

/* Token by token, in chunks that cut the blocks anywhere, and on other numbers of threads: the same
 * bits, and those of the plain formula to the rounding of the type. */
static void test_attention(void **state)
{
    (void)state;
    rng r = {5};
    fill(&r, K, CTX * HEADS_KV * MAX_DIM);
    fill(&r, V, CTX * HEADS_KV * MAX_DIM);
    fill(&r, Q, CTX * HEADS * MAX_DIM);
    for (size_t i = 0; i < N_CACHES; i++) {
        uint32_t dim = CACHES[i].dim;
        attention_rig rig;
        rig_init(&rig, "scalar", dim, CACHES[i].type, 1);
        attend(&rig, 0, CTX, 1, K, V, Q, WANT);
        rig_fini(&rig);
        for (uint32_t n_chunk = 1; n_chunk <= CTX; n_chunk = n_chunk * 5 + 2) {
            for (uint32_t n_threads = 1; n_threads <= 3; n_threads++) {
                rig_init(&rig, NULL, dim, CACHES[i].type, n_threads);
                attend(&rig, 0, CTX, n_chunk, K, V, Q, GOT);
                rig_fini(&rig);
                assert_memory_equal(GOT, WANT, sizeof(float) * CTX * HEADS * dim);
            }
        }
        for (uint32_t position = 0; position < CTX; position += 37) {
            for (uint32_t head = 0; head < HEADS; head++) {
                const float *out = WANT + ((size_t)position * HEADS + head) * dim;
                double plain[MAX_DIM];
                attention_plain(dim, K, V, Q + (size_t)position * HEADS * dim, position, head,
                                plain);
                for (size_t j = 0; j < dim; j++) {
                    assert_true(fabs(out[j] - plain[j]) < CACHES[i].tolerance);
                }
            }
        }
    }
}

/* Whatever lay behind the point where a cache is truncated, NaN and infinity too, leaves no trace,
 * neither before that point nor after. */
static void test_attention_after_truncation(void **state)
{
    (void)state;
    static const uint32_t cuts[] = {1, 15, 16, 17, 255, 256, 257, 300, 599};
    static float other[CTX * HEADS * MAX_DIM];
    rng r = {6};
    fill(&r, K, CTX * HEADS_KV * MAX_DIM);
    fill(&r, V, CTX * HEADS_KV * MAX_DIM);
    fill(&r, Q, CTX * HEADS * MAX_DIM);
    for (size_t i = 0; i < CTX * HEADS * MAX_DIM; i++) {
        other[i] = i % 3 == 0 ? INFINITY : i % 3 == 1 ? NAN : 1e30f;
    }
    for (size_t i = 0; i < N_CACHES; i++) {
        size_t n_bytes = sizeof(float) * CTX * HEADS * CACHES[i].dim;
        attention_rig rig;
        rig_init(&rig, NULL, CACHES[i].dim, CACHES[i].type, 2);
        attend(&rig, 0, CTX, CTX, K, V, Q, WANT);
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
            memcpy(GOT, WANT, n_bytes);
            attend(&rig, cuts[c], CTX, 100, other, other, other, GOT);
            attend(&rig, cuts[c], CTX, 7, K, V, Q, GOT);
            attend(&rig, cuts[c] - 1, cuts[c], 1, K, V, Q, GOT);
            assert_memory_equal(GOT, WANT, n_bytes);
        }
        rig_fini(&rig);
    }
}

static void test_cache_types_and_heads(void **state)
{
    (void)state;
    const model_config cfg = {.n_layer = 3, .n_head = 4, .n_head_kv = 2, .n_embd_head = 24};
    const model_config whole = {.n_layer = 3, .n_head = 4, .n_head_kv = 2, .n_embd_head = 64};
    smoe_err err = {0};
    assert_int_equal(kv_cache_check(&cfg, DTYPE_F16, &err), SMOE_OK);
    assert_int_equal(kv_cache_check(&cfg, DTYPE_Q8_0, &err), SMOE_RANGE);
    assert_non_null(strstr(err.text, "24"));
    assert_int_equal(kv_cache_check(&whole, DTYPE_Q8_0, &err), SMOE_OK);
    assert_int_equal(kv_cache_bytes(&whole, DTYPE_F16, 17), 2 * 3 * 2 * 32 * 128);
    assert_int_equal(kv_cache_bytes(&whole, DTYPE_Q8_0, 17), 2 * 3 * 2 * 32 * 68);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_frequencies),
        cmocka_unit_test(test_linear_is_default_divided),
        cmocka_unit_test(test_rotation_keeps_length_and_order),
        cmocka_unit_test(test_router),
        cmocka_unit_test(test_router_refuses_what_is_not_finite),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_matrix_row),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_attention_after_truncation),
        cmocka_unit_test(test_cache_types_and_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
