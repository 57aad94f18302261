/* test_routing.c: traces on disk, the law of routing, and policies against every possible choice of
 * victims. */
#include "../../support/test.h"

#include <math.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "bench/policy_sim.h"
#include "bench/routing.h"

struct fixture {
    char dir[64];
    char path[96];
};

static int make(void **state)
{
    static struct fixture f;
    test_dir_make(f.dir);
    snprintf(f.path, sizeof f.path, "%s/trace", f.dir);
    *state = &f;
    return 0;
}

static int clean(void **state)
{
    struct fixture *f = *state;
    test_dir_remove(f->dir);
    return 0;
}

/* ---- traces ---- */

static const trace_shape SHAPE = {3, 700, 5};

/* Passes of 1, 2, ... tokens with random choices. */
static void fill(trace *t, const trace_shape *shape, uint32_t n_passes, uint64_t seed)
{
    smoe_err err;
    routing *r;
    trace_init(t, shape, NULL);
    ASSERT_OK(routing_new(shape, &ROUTING_UNIFORM, seed, &r, &err), &err);
    for (uint32_t n = 1; n <= n_passes; n++) {
        ASSERT_OK(trace_add_pass(t, n, &err), &err);
        for (uint64_t token = t->n_tokens - n; token < t->n_tokens; token++) {
            for (uint32_t layer = 0; layer < shape->n_layer; layer++) {
                routing_next(r, layer, trace_at(t, token, layer));
            }
        }
    }
    routing_free(r);
}

static void write_bytes(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
}

static void test_round_trip(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    trace t, back;
    fill(&t, &SHAPE, 5, 1);
    memcpy(t.lineage, "0123456789abcdef", 16);
    ASSERT_OK(trace_write(&t, f->path, &err), &err);
    ASSERT_OK(trace_read(f->path, &back, &err), &err);
    assert_memory_equal(&t.shape, &back.shape, sizeof t.shape);
    assert_string_equal(t.lineage, back.lineage);
    assert_int_equal(back.n_tokens, 15);
    assert_int_equal(back.n_passes, 5);
    assert_int_equal(trace_pass_tokens(&back, 3), 4);
    assert_int_equal(t.experts.len, back.experts.len);
    assert_memory_equal(t.experts.data, back.experts.data, t.experts.len);
    trace_fini(&back);
    trace_fini(&t);
    trace_init(&t, &SHAPE, NULL);
    ASSERT_FAILS(trace_write(&t, f->path, &err), SMOE_RANGE, &err, "empty");
    trace_fini(&t);
}

static void refuse(struct fixture *f, const uint8_t *bytes, size_t n, const char *part)
{
    smoe_err err;
    trace t;
    write_bytes(f->path, bytes, n);
    ASSERT_FAILS(trace_read(f->path, &t, &err), SMOE_FORMAT, &err, part);
}

static void refuse_with(struct fixture *f, const buf *good, size_t at, uint8_t value,
                        const char *part)
{
    uint8_t *bad = mem_alloc(good->len);
    memcpy(bad, good->data, good->len);
    bad[at] = value;
    refuse(f, bad, good->len, part);
    mem_free(bad);
}

static void test_hostile_files(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    trace t;
    buf good;
    fill(&t, &SHAPE, 2, 7);
    ASSERT_OK(trace_write(&t, f->path, &err), &err);
    trace_fini(&t);
    buf_init(&good, 1 << 20);
    ASSERT_OK(file_slurp(f->path, 1 << 20, &good, &err), &err);
    for (size_t n = 0; n < good.len; n++) { /* cut anywhere but behind a whole pass */
        if (n != 64 + 4 + 30) {
            refuse(f, (const uint8_t *)good.data, n, n < 64 ? "no trace" : "cut short");
        }
    }
    const struct {
        size_t at;
        uint8_t value;
        const char *part;
    } bad[] = {
        {0, 'x', "no trace"},      {8, 2, "version 2"},       {12, 0, "no shape"},
        {14, 1, "no shape"},       {17, 0x20, "no shape"},    {20, 0, "no shape"},
        {23, 1, "no shape"},       {24, 'g', "hex digits"},   {64, 0, "cut short"},
        {67, 255, "cut short"},    {69, 200, "does not exist"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        refuse_with(f, &good, bad[i].at, bad[i].value, bad[i].part);
    }
    memcpy(good.data + 70, good.data + 68, 2);
    refuse(f, (const uint8_t *)good.data, good.len, "chosen already");
    buf_fini(&good);
}

static void test_refused_memory(void **state)
{
    struct fixture *f = *state;
    smoe_err err;
    trace t, back;
    smoe_status status = SMOE_NOMEM;
    fill(&t, &SHAPE, 3, 1);
    ASSERT_OK(trace_write(&t, f->path, &err), &err);
    for (uint64_t nth = 1; status != SMOE_OK; nth++) {
        routing *r = NULL;
        policy_result result;
        back = (trace){0};
        mem_fail_nth(nth);
        status = trace_read(f->path, &back, &err);
        status = status ? status : routing_new(&SHAPE, &ROUTING_STICKY, 1, &r, &err);
        status = status ? status : routing_trace(r, 10, &back, &err);
        status = status ? status : policy_simulate(&back, POLICY_OPT, 20, 1, &result, &err);
        mem_fail_nth(0);
        assert_true(status == SMOE_OK || status == SMOE_NOMEM);
        routing_free(r);
        trace_fini(&back);
    }
    trace_fini(&t);
}

/* ---- the law ---- */

static void test_law_is_reproducible(void **state)
{
    smoe_err err;
    trace a, b;
    routing *r;
    (void)state;
    trace_init(&a, &SHAPE, NULL);
    trace_init(&b, &SHAPE, NULL);
    ASSERT_OK(routing_new(&SHAPE, &ROUTING_STICKY, 3, &r, &err), &err);
    ASSERT_OK(routing_trace(r, 20, &a, &err), &err);
    routing_free(r);
    ASSERT_OK(routing_new(&SHAPE, &ROUTING_STICKY, 3, &r, &err), &err);
    ASSERT_OK(trace_add_pass(&b, 20, &err), &err);
    for (uint32_t layer = SHAPE.n_layer; layer-- > 0;) { /* one pass, layers in another order */
        for (uint32_t token = 0; token < 20; token++) {
            routing_next(r, layer, trace_at(&b, token, layer));
        }
    }
    routing_free(r);
    assert_memory_equal(a.experts.data, b.experts.data, a.experts.len);
    trace_fini(&a);
    trace_fini(&b);
}

static double lru_rate(const trace_shape *shape, const routing_law *law, uint32_t n_slots)
{
    smoe_err err;
    trace t;
    routing *r;
    policy_result result;
    trace_init(&t, shape, NULL);
    ASSERT_OK(routing_new(shape, law, 1, &r, &err), &err);
    ASSERT_OK(routing_trace(r, 400, &t, &err), &err);
    ASSERT_OK(policy_simulate(&t, POLICY_LRU, n_slots, 1, &result, &err), &err);
    routing_free(r);
    trace_fini(&t);
    return (double)result.n_hits_warm / (double)result.n_asked_warm;
}

/* What the law is calibrated for; and uniform choices hit what is resident. */
static void test_law_hits_what_it_should(void **state)
{
    const trace_shape qwen = {48, 128, 8};
    (void)state;
    assert_true(fabs(lru_rate(&qwen, &ROUTING_STICKY, 6144 * 13 / 100) - 0.53) < 0.02);
    assert_true(fabs(lru_rate(&qwen, &ROUTING_STICKY, 6144 * 26 / 100) - 0.76) < 0.02);
    double uniform = lru_rate(&qwen, &ROUTING_UNIFORM, 6144 / 2);
    assert_true(fabs(uniform - 0.47) < 0.05); /* the running token's own demand is newest */
}

static void test_law_of_everything(void **state)
{
    const trace_shape all = {2, 6, 6};
    const routing_law laws[] = {{0, 0}, {0, 1}, {8, 0}, {8, 1}};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        assert_true(lru_rate(&all, &laws[i], 12) == 1);
    }
}

/* ---- policies ---- */

/* The most hits that any choice of victims gives, from demand d on with `ring` resident. */
static uint32_t best_hits(const uint32_t *demands, uint32_t n_demands, uint32_t d, uint32_t ring,
                          uint32_t n_slots)
{
    if (d == n_demands) {
        return 0;
    }
    uint32_t want = demands[d], all = ring | want, best = 0;
    for (uint32_t keep = all;; keep = (keep - 1) & all) { /* every subset */
        if ((keep & want) == want && (uint32_t)__builtin_popcount(keep) <= n_slots) {
            uint32_t n = best_hits(demands, n_demands, d + 1, keep, n_slots);
            best = n > best ? n : best;
        }
        if (keep == 0) {
            break;
        }
    }
    return best + (uint32_t)__builtin_popcount(ring & want);
}

static void test_optimum_is_the_best_of_all(void **state)
{
    const trace_shape shape = {2, 3, 2};
    rng random = {5};
    (void)state;
    for (uint32_t round = 0; round < 300; round++) {
        smoe_err err;
        trace t;
        policy_result opt, other;
        uint32_t demands[8], n_slots = 2 + round % 3;
        fill(&t, &shape, 0, 0);
        for (uint32_t token = 0; token < 4; token++) {
            ASSERT_OK(trace_add_pass(&t, 1, &err), &err);
            for (uint32_t layer = 0; layer < 2; layer++) {
                uint16_t *e = trace_at(&t, token, layer), out = (uint16_t)(rng_next(&random) % 3);
                e[0] = (uint16_t)((out + 1) % 3);
                e[1] = (uint16_t)((out + 2) % 3);
                demands[2 * token + layer] = (1u << e[0] | 1u << e[1]) << 3 * layer;
            }
        }
        ASSERT_OK(policy_simulate(&t, POLICY_OPT, n_slots, 1, &opt, &err), &err);
        assert_int_equal(opt.n_asked, 16);
        assert_int_equal(opt.n_hits, best_hits(demands, 8, 0, 0, n_slots));
        for (int policy = POLICY_LRU; policy <= POLICY_LFU; policy++) {
            ASSERT_OK(policy_simulate(&t, policy, n_slots, 1 + round % 5, &other, &err), &err);
            assert_true(other.n_hits <= opt.n_hits);
        }
        trace_fini(&t);
    }
}

/* The least useful of what is resident and not asked for now, by a table of all uses. */
struct slow {
    enum policy policy;
    double half_life, now;
    double last[64], count[64], counted_at[64];
    bool is_resident[64], is_asked[64];
    uint32_t n_resident;
};

static double worth(const struct slow *s, uint32_t record)
{
    return s->policy == POLICY_LRU
               ? s->last[record]
               : s->count[record] * exp2((s->counted_at[record] - s->now) / s->half_life);
}

static void evict(struct slow *s)
{
    uint32_t victim = 64;
    for (uint32_t i = 0; i < 64; i++) {
        if (s->is_resident[i] && !s->is_asked[i] &&
            (victim == 64 || worth(s, i) < worth(s, victim))) {
            victim = i;
        }
    }
    assert_true(victim < 64);
    s->is_resident[victim] = false;
    s->n_resident--;
}

static uint64_t slow_hits(const trace *t, enum policy policy, uint32_t n_slots, double half_life)
{
    struct slow s = {.policy = policy, .half_life = half_life};
    uint64_t n_hits = 0, n_uses = 0;
    for (uint64_t token = 0; token < t->n_tokens; token++) {
        s.now = (double)token;
        for (uint32_t layer = 0; layer < t->shape.n_layer; layer++) {
            const uint16_t *e = trace_at(t, token, layer);
            memset(s.is_asked, 0, sizeof s.is_asked);
            for (uint32_t k = 0; k < t->shape.n_used; k++) {
                s.is_asked[layer * t->shape.n_expert + e[k]] = true;
            }
            for (uint32_t k = 0; k < t->shape.n_used; k++) {
                uint32_t record = layer * t->shape.n_expert + e[k];
                n_hits += s.is_resident[record];
                if (!s.is_resident[record] && s.n_resident == n_slots) {
                    evict(&s);
                }
                s.n_resident += !s.is_resident[record];
                s.is_resident[record] = true;
                s.last[record] = (double)++n_uses;
                s.count[record] = 1 + s.count[record] *
                                          exp2((s.counted_at[record] - s.now) / half_life);
                s.counted_at[record] = s.now;
            }
        }
    }
    return n_hits;
}

/* LRU and LFU against the same rules written as a search. */
static void test_policies_against_a_search(void **state)
{
    const trace_shape shape = {4, 16, 3};
    const double half_lives[] = {1.37, 5.71, 33.3};
    (void)state;
    for (uint32_t seed = 1; seed <= 12; seed++) {
        smoe_err err;
        trace t;
        routing *r;
        policy_result got;
        uint32_t n_slots = 12 + 4 * (seed % 9);
        trace_init(&t, &shape, NULL);
        ASSERT_OK(routing_new(&shape, &ROUTING_STICKY, seed, &r, &err), &err);
        ASSERT_OK(routing_trace(r, 200, &t, &err), &err);
        ASSERT_OK(policy_simulate(&t, POLICY_LRU, n_slots, 1, &got, &err), &err);
        assert_int_equal(got.n_hits, slow_hits(&t, POLICY_LRU, n_slots, 1));
        for (size_t i = 0; i < 3; i++) {
            ASSERT_OK(policy_simulate(&t, POLICY_LFU, n_slots, half_lives[i], &got, &err), &err);
            uint64_t want = slow_hits(&t, POLICY_LFU, n_slots, half_lives[i]);
            /* equal counts may be ordered otherwise by the last bit of a sum */
            assert_true(llabs((long long)got.n_hits - (long long)want) <= (long long)want / 100);
        }
        routing_free(r);
        trace_fini(&t);
    }
}

/* A prompt's union larger than the ring is taken in pieces; warm is the second half. */
static void test_pieces_and_halves(void **state)
{
    const trace_shape shape = {1, 8, 1};
    smoe_err err;
    trace t;
    policy_result got;
    (void)state;
    trace_init(&t, &shape, NULL);
    for (uint32_t pass = 0; pass < 4; pass++) {
        ASSERT_OK(trace_add_pass(&t, 8, &err), &err);
        for (uint32_t i = 0; i < 8; i++) {
            *trace_at(&t, pass * 8 + i, 0) = (uint16_t)i;
        }
    }
    ASSERT_OK(policy_simulate(&t, POLICY_LRU, 4, 1, &got, &err), &err);
    assert_int_equal(got.n_asked, 32);
    assert_int_equal(got.n_hits, 0); /* a cycle longer than the ring */
    ASSERT_OK(policy_simulate(&t, POLICY_LRU, 8, 1, &got, &err), &err);
    assert_int_equal(got.n_hits, 24);
    assert_int_equal(got.n_asked_warm, 16);
    assert_int_equal(got.n_hits_warm, 16);
    assert_int_equal(got.n_tokens_warm, 16);
    trace_fini(&t);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, make, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIR(test_round_trip),
        WITH_DIR(test_hostile_files),
        WITH_DIR(test_refused_memory),
        cmocka_unit_test(test_law_is_reproducible),
        cmocka_unit_test(test_law_hits_what_it_should),
        cmocka_unit_test(test_law_of_everything),
        cmocka_unit_test(test_optimum_is_the_best_of_all),
        cmocka_unit_test(test_policies_against_a_search),
        cmocka_unit_test(test_pieces_and_halves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
