/* test_arrival.c: experts that arrive in any order, some at once and some late, give the same bits.
 *
 *   test_arrival STEM   a golden checkpoint of 3 layers, 8 experts and 288 tokens, shattered */
#include "../../support/test.h"

#include "base/mem.h"
#include "base/rng.h"
#include "formats/vault.h"
#include "model/forward.h"

enum { N_VOCAB = 288, N_IDS = 24, N_CTX = 64, MAX_EXPERTS = 64 };

static char vault_path[512], scout_path[512];

/* All records in RAM; the order of handing out, and what a caller that does not wait gets, is
 * drawn. */
typedef struct ram_source {
    expert_source source;
    const vault *v;
    uint8_t *records;
    rng rng;
    bool shuffle;
    uint64_t fail_at, n_given; /* the fail_at-th record handed out fails; 0 = none */
    uint32_t layer, list[MAX_EXPERTS], places[MAX_EXPERTS], n_left, n_pinned;
} ram_source;

static smoe_status ram_demand(expert_source *source, uint32_t layer, const uint32_t *experts,
                              uint32_t n, smoe_err *err)
{
    ram_source *r = (ram_source *)source;
    (void)err;
    assert_int_equal(r->n_left, 0);
    assert_true(n <= MAX_EXPERTS);
    r->layer = layer;
    r->n_left = n;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < i; j++) {
            assert_int_not_equal(experts[i], experts[j]);
        }
        r->list[i] = experts[i];
        r->places[i] = n - 1 - i;
    }
    return SMOE_OK;
}

static smoe_status ram_next(expert_source *source, bool wait, uint32_t *i, const uint8_t **record,
                            smoe_err *err)
{
    ram_source *r = (ram_source *)source;
    *i = EXPERT_NONE;
    if (r->n_left == 0 || (r->shuffle && !wait && rng_next(&r->rng) % 3 == 0)) {
        return SMOE_OK;
    }
    if (++r->n_given == r->fail_at) {
        return err_set(err, SMOE_IO, "this record cannot be read");
    }
    uint32_t at = r->shuffle ? (uint32_t)(rng_next(&r->rng) % r->n_left) : r->n_left - 1;
    *i = r->places[at];
    r->places[at] = r->places[--r->n_left];
    *record = r->records + ((size_t)r->layer * r->v->n_expert + r->list[*i]) * r->v->record_bytes;
    assert_true(++r->n_pinned <= r->source.max_pinned);
    return SMOE_OK;
}

static void ram_release(expert_source *source, uint32_t layer, uint32_t expert)
{
    ram_source *r = (ram_source *)source;
    assert_int_equal(layer, r->layer);
    assert_true(expert < r->v->n_expert && r->n_pinned > 0);
    r->n_pinned--;
}

static void ram_abandon(expert_source *source)
{
    ((ram_source *)source)->n_left = 0;
}

struct fixture {
    vault v;
    scout s;
    weights w;
    kv_cache kv;
    scratch scratch;
    pool *pool;
    forward_ctx f;
    ram_source ram;
    int32_t ids[N_IDS];
};

static int make(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    smoe_err err;
    ASSERT_OK(vault_open(&f->v, vault_path, &err), &err);
    ASSERT_OK(scout_open(&f->s, scout_path, &err), &err);
    ASSERT_OK(weights_load(&f->w, &f->s, &err), &err);
    const model_config *cfg = &f->w.config;
    ASSERT_OK(kv_cache_init(&f->kv, cfg, DTYPE_F16, N_CTX, &err), &err);
    ASSERT_OK(scratch_init(&f->scratch, cfg, N_IDS, N_CTX, 2, &err), &err);
    ASSERT_OK(pool_new(2, &f->pool, &err), &err);
    f->ram = (ram_source){.source = {ram_demand, ram_next, ram_release, ram_abandon, NULL, NULL,
                                     cfg->n_expert_used},
                          .v = &f->v, .rng = {5}};
    f->ram.records = malloc((size_t)f->v.n_layer * f->v.n_expert * f->v.record_bytes);
    for (uint32_t i = 0; i < f->v.n_layer * f->v.n_expert; i++) {
        ASSERT_OK(vault_read_record(&f->v, i / f->v.n_expert, i % f->v.n_expert,
                                    f->ram.records + i * f->v.record_bytes, &err),
                  &err);
    }
    f->f = (forward_ctx){
        .w = &f->w, .gate = &f->v.gate, .up = &f->v.up, .down = &f->v.down,
        .compute = {.k = kernels_get(NULL), .panel = panel_kernels_get(NULL), .pool = f->pool},
        .kv = &f->kv, .s = &f->scratch, .experts = &f->ram.source,
    };
    forward_init(&f->f);
    for (size_t i = 0; i < N_IDS; i++) {
        f->ids[i] = (int32_t)(1 + i * 7919 % (N_VOCAB - 1));
    }
    *state = f;
    return 0;
}

static int clean(void **state)
{
    struct fixture *f = *state;
    pool_free(f->pool);
    scratch_fini(&f->scratch);
    kv_cache_fini(&f->kv);
    weights_unload(&f->w);
    scout_close(&f->s);
    vault_close(&f->v);
    free(f->ram.records);
    free(f);
    return 0;
}

/* Logits of the last id, when n_batch ids are run at a time. */
static void last_logits(struct fixture *f, uint32_t n_batch, float out[N_VOCAB])
{
    smoe_err err;
    const float *logits;
    uint32_t n = 0;
    for (uint32_t at = 0; at < N_IDS; at += n) {
        n = N_IDS - at < n_batch ? N_IDS - at : n_batch;
        ASSERT_OK(forward(&f->f, f->ids + at, n, at, &err), &err);
    }
    ASSERT_OK(forward_logits(&f->f, n - 1, &logits, &err), &err);
    memcpy(out, logits, N_VOCAB * sizeof *out);
    assert_int_equal(f->ram.n_pinned, 0);
    assert_int_equal(f->ram.n_left, 0);
}

static void test_any_order_same_bits(void **state)
{
    struct fixture *f = *state;
    static const uint32_t batches[] = {1, 2, 7, N_IDS};
    float want[N_VOCAB], got[N_VOCAB];
    last_logits(f, 1, want);
    f->ram.shuffle = true;
    for (int round = 0; round < 12; round++) {
        last_logits(f, batches[round % 4], got);
        assert_memory_equal(got, want, sizeof want);
    }
    f->ram.source.max_pinned = 1; /* too few for one token's experts together */
    last_logits(f, 1, got);
    assert_memory_equal(got, want, sizeof want);
}

/* A record that cannot be read, whichever it is, leaves nothing pinned and nothing announced. */
static void test_a_failure_lets_everything_go(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    float want[N_VOCAB], got[N_VOCAB];
    last_logits(f, N_IDS, want);
    f->ram.shuffle = true;
    for (uint32_t n = 1; n <= N_IDS; n += N_IDS - 1) {
        uint32_t fail_at = 0;
        smoe_status status = SMOE_IO;
        while (status != SMOE_OK) {
            f->ram.n_given = 0;
            f->ram.fail_at = ++fail_at;
            status = forward(&f->f, f->ids, n, 0, &err);
            assert_true(status == SMOE_OK || status == SMOE_IO);
            assert_int_equal(f->ram.n_pinned, 0);
            assert_int_equal(f->ram.n_left, 0);
        }
        assert_true(fail_at > 6);
    }
    f->ram.fail_at = 0;
    last_logits(f, 5, got);
    assert_memory_equal(got, want, sizeof want);
}

#define WITH_MODEL(f) cmocka_unit_test_setup_teardown(f, make, clean)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WITH_MODEL(test_any_order_same_bits),
        WITH_MODEL(test_a_failure_lets_everything_go),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s STEM\n", argv[0]);
        return 2;
    }
    snprintf(vault_path, sizeof vault_path, "%s.smoe", argv[1]);
    snprintf(scout_path, sizeof scout_path, "%s.scout.safetensors", argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
