/* test_expert_resident.c: loading a whole vault, of records small and large, side by side and not:
 * what is handed out afterwards, and how loading ends when records are damaged, reads fail, the
 * file is cut short, the drive is slow, or nobody wants it any more. A load that fails leaves
 * nothing, and the next one works. */
#include "../../support/fault_aio.h"
#include "../../support/test.h"

#include <errno.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "cache/expert_resident.h"

enum { WATCHDOG_S = 120, MAX_RECORDS = 100, MAX_RECORD_BYTES = 6 << 20 };

/* How the records of a vault lie. */
struct shape {
    const char *name;
    uint32_t n_layer, n_expert, record_bytes;
    uint32_t n_dense; /* layers at the beginning that have no records */
    bool reversed;    /* in the file: each read covers one record */
};

/* A read is 4 MiB of neighbours at most: 85 records and a third; one; two thirds of one. */
static const struct shape shapes[] = {
    {"small", 3, 8, VAULT_ALIGN, 0, false},
    {"dense layer", 3, 8, VAULT_ALIGN, 1, false},
    {"reversed", 3, 8, VAULT_ALIGN, 0, true},
    {"many", 4, 25, 3 * VAULT_ALIGN, 0, false},
    {"large", 1, 2, MAX_RECORD_BYTES, 0, false},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

struct fixture {
    char dir[64], path[128];
    const struct shape *shape;
    vault v;
    pool *pool;
    uint64_t offsets[MAX_RECORDS], checksums[MAX_RECORDS];
    uint64_t n_done, n_calls, cancel_at; /* of progress */
};

static uint8_t data[MAX_RECORD_BYTES];

static void fill(uint32_t record, uint32_t n_bytes)
{
    for (uint32_t i = 0; i < n_bytes; i++) {
        data[i] = (uint8_t)(record * 31 + i * 7 + (i >> 8));
    }
}

static void write_record(struct fixture *f, uint32_t record)
{
    FILE *out = fopen(f->path, "r+");
    assert_non_null(out);
    fill(record, f->shape->record_bytes);
    f->checksums[record] = hash_bytes(data, f->shape->record_bytes);
    assert_int_equal(fseek(out, (long)f->offsets[record], SEEK_SET), 0);
    assert_int_equal(fwrite(data, 1, f->shape->record_bytes, out), f->shape->record_bytes);
    assert_int_equal(fclose(out), 0);
}

static uint32_t first_record(const struct fixture *f)
{
    return f->shape->n_dense * f->shape->n_expert;
}

static uint32_t end_record(const struct fixture *f)
{
    return f->shape->n_layer * f->shape->n_expert;
}

static void make_vault(struct fixture *f, const struct shape *shape)
{
    smoe_err err = {0};
    f->shape = shape;
    snprintf(f->path, sizeof f->path, "%s/records", f->dir);
    fclose(fopen(f->path, "w"));
    uint32_t begin = first_record(f), end = end_record(f);
    assert_true(end <= MAX_RECORDS);
    memset(f->offsets, 0, sizeof f->offsets);
    for (uint32_t r = begin; r < end; r++) {
        uint64_t at = shape->reversed ? end - 1 - r : r - begin;
        f->offsets[r] = VAULT_ALIGN + at * shape->record_bytes;
        write_record(f, r);
    }
    f->v = (vault){.record_bytes = shape->record_bytes, .n_layer = shape->n_layer,
                   .n_expert = shape->n_expert, .n_records = end - begin,
                   .record_offset = f->offsets, .record_checksum = f->checksums};
    ASSERT_OK(file_open(&f->v.st.file, f->path, &err), &err);
}

static int make(void **state)
{
    smoe_err err = {0};
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    alarm(WATCHDOG_S); /* a load that hangs ends the test */
    test_dir_make(f->dir);
    f->v.st.file = FILE_CLOSED;
    ASSERT_OK(pool_new(3, &f->pool, &err), &err);
    *state = f;
    return 0;
}

static int clean(void **state)
{
    struct fixture *f = *state;
    pool_free(f->pool);
    file_close(&f->v.st.file);
    test_dir_remove(f->dir);
    free(f);
    alarm(0);
    return 0;
}

static bool on_progress(void *ctx, uint64_t n_done, uint64_t n_total)
{
    struct fixture *f = ctx;
    assert_true(n_done >= f->n_done && n_done <= n_total);
    assert_int_equal(n_total, f->v.n_records * f->v.record_bytes);
    f->n_done = n_done;
    return ++f->n_calls != f->cancel_at;
}

/* Loads under these rules. */
static smoe_status load(struct fixture *f, const fault_rule *rules, uint32_t n, expert_resident *r,
                        smoe_err *err)
{
    aio_backend *b = fault_aio_new(f->v.st.file.fd, EXPERT_RESIDENT_DEPTH);
    assert_non_null(b);
    fault_aio_set(b, rules, n);
    f->n_done = f->n_calls = 0;
    const expert_resident_params p = {.vault = &f->v, .pool = f->pool, .backend = b,
                                      .progress = on_progress, .progress_ctx = f};
    return expert_resident_init(r, &p, err);
}

static void expect_all(struct fixture *f, expert_resident *r)
{
    smoe_err err = {0};
    expert_source *s = &r->source;
    for (uint32_t layer = f->shape->n_dense; layer < f->shape->n_layer; layer++) {
        uint32_t experts[MAX_RECORDS];
        for (uint32_t e = 0; e < f->shape->n_expert; e++) {
            experts[e] = f->shape->n_expert - 1 - e;
        }
        ASSERT_OK(s->demand(s, layer, experts, f->shape->n_expert, &err), &err);
        for (uint32_t n = 0; n <= f->shape->n_expert; n++) {
            const uint8_t *record = NULL;
            uint32_t i = 0;
            ASSERT_OK(s->next(s, n & 1, &i, &record, &err), &err);
            if (n == f->shape->n_expert) {
                assert_int_equal(i, EXPERT_NONE);
                break;
            }
            fill(layer * f->shape->n_expert + experts[i], f->shape->record_bytes);
            assert_memory_equal(record, data, f->shape->record_bytes);
            s->release(s, layer, experts[i]);
        }
    }
}

static void expect_good(struct fixture *f, const fault_rule *rules, uint32_t n)
{
    smoe_err err = {0};
    expert_resident r;
    ASSERT_OK(load(f, rules, n, &r, &err), &err);
    assert_int_equal(f->n_done, f->v.n_records * f->v.record_bytes);
    assert_int_equal(r.stats.bytes_read, f->n_done);
    expect_all(f, &r);
    expert_resident_fini(&r);
}

/* Fails with this, naming the file and the place; then loads without faults. */
static void expect_bad(struct fixture *f, const fault_rule *rules, uint32_t n, const char *part)
{
    smoe_err err = {0};
    expert_resident r;
    ASSERT_FAILS(load(f, rules, n, &r, &err), SMOE_IO, &err, part);
    assert_non_null(strstr(err.text, f->path));
    assert_non_null(strstr(err.text, "blk."));
    assert_null(r.memory);
    expect_good(f, NULL, 0);
}

static fault_rule rule_for(const struct fixture *f, uint32_t record, fault_kind kind,
                           uint32_t n_times, uint32_t amount)
{
    uint64_t begin = f->offsets[record];
    return (fault_rule){kind, begin, begin + f->shape->record_bytes, n_times, amount};
}

static fault_rule everywhere(fault_kind kind, uint32_t n_times, uint32_t amount)
{
    return (fault_rule){kind, 0, UINT64_MAX, n_times, amount};
}

#define EACH_SHAPE(f)                                                                  \
    for (int shape_ = 0; shape_ < N_SHAPES && (make_vault((f), &shapes[shape_]), true); \
         shape_++, file_close(&(f)->v.st.file))

static void test_every_shape(void **state)
{
    struct fixture *f = *state;
    EACH_SHAPE(f) {
        expect_good(f, NULL, 0);
        for (int kind = 0; kind < 4; kind++) { /* and not through the fault's threads */
            smoe_err err = {0};
            expert_resident r;
            const expert_resident_params p = {.vault = &f->v, .pool = f->pool, .kind = kind / 2,
                                              .direct = kind % 2};
            smoe_status status = expert_resident_init(&r, &p, &err);
            if (status != SMOE_UNSUPPORTED) {
                ASSERT_OK(status, &err);
                expect_all(f, &r);
                expert_resident_fini(&r);
            }
        }
    }
}

static void test_short_reads(void **state)
{
    struct fixture *f = *state;
    EACH_SHAPE(f) {
        const fault_rule odd = everywhere(FAULT_SHORT, 500, 10007);
        const fault_rule always = everywhere(FAULT_SHORT, FAULT_FOR_EVER, 3 * VAULT_ALIGN + 1);
        expect_good(f, &odd, 1);
        expect_good(f, &always, 1);
    }
}

static void test_eio(void **state)
{
    struct fixture *f = *state;
    EACH_SHAPE(f) {
        fault_rule rule = rule_for(f, end_record(f) / 2, FAULT_ERROR, 3, EIO);
        expect_good(f, &rule, 1);
        rule = everywhere(FAULT_ERROR, FAULT_FOR_EVER, EIO);
        expect_bad(f, &rule, 1, strerror(EIO));
        rule = everywhere(FAULT_ERROR, 1, ENXIO);
        expect_bad(f, &rule, 1, strerror(ENXIO));
    }
}

/* The bad place lies somewhere in a read: the sentence says what the read covered. */
static void test_eio_names_the_records(void **state)
{
    struct fixture *f = *state;
    smoe_err err = {0};
    expert_resident r;
    make_vault(f, &shapes[0]);
    const fault_rule all = everywhere(FAULT_ERROR, FAULT_FOR_EVER, EIO);
    ASSERT_FAILS(load(f, &all, 1, &r, &err), SMOE_IO, &err,
                 "records blk.0.exp.0 to blk.2.exp.7 at offset 16384 cannot be read");
    file_close(&f->v.st.file);
    make_vault(f, &shapes[2]);
    const fault_rule one = rule_for(f, 11, FAULT_ERROR, FAULT_FOR_EVER, EIO);
    ASSERT_FAILS(load(f, &one, 1, &r, &err), SMOE_IO, &err,
                 "record blk.1.exp.3 at offset 212992 cannot be read");
}

/* One byte of the first record, of one in the middle, of the last one. */
static void test_damaged_records(void **state)
{
    struct fixture *f = *state;
    EACH_SHAPE(f) {
        uint32_t begin = first_record(f), end = end_record(f);
        const uint32_t records[] = {begin, (begin + end) / 2, end - 1};
        for (int i = 0; i < 3; i++) {
            smoe_err err = {0};
            expert_resident r;
            char name[64];
            uint64_t at = f->offsets[records[i]] + (uint64_t)i * (f->shape->record_bytes - 1) / 2;
            snprintf(name, sizeof name, "record blk.%u.exp.%u at offset %llu is damaged: checksum",
                     records[i] / f->shape->n_expert, records[i] % f->shape->n_expert,
                     (unsigned long long)f->offsets[records[i]]);
            FILE *out = fopen(f->path, "r+");
            assert_non_null(out);
            fseek(out, (long)at, SEEK_SET);
            int byte = fgetc(out);
            fseek(out, (long)at, SEEK_SET);
            fputc(byte ^ 1, out);
            assert_int_equal(fclose(out), 0);
            ASSERT_FAILS(load(f, NULL, 0, &r, &err), SMOE_FORMAT, &err, name);
            assert_non_null(strstr(err.text, f->path));
            assert_null(r.memory);
            write_record(f, records[i]);
        }
        expect_good(f, NULL, 0);
    }
}

/* The drive delivers wrong bytes once, without an error. */
static void test_wrong_bytes(void **state)
{
    struct fixture *f = *state;
    EACH_SHAPE(f) {
        smoe_err err = {0};
        expert_resident r;
        const fault_rule rule = everywhere(FAULT_WRONG, 1, 0);
        ASSERT_FAILS(load(f, &rule, 1, &r, &err), SMOE_FORMAT, &err, "checksum");
        expect_good(f, NULL, 0);
    }
}

static void test_cut_short(void **state)
{
    struct fixture *f = *state;
    EACH_SHAPE(f) {
        uint64_t n_bytes = VAULT_ALIGN + f->v.n_records * f->v.record_bytes;
        const uint64_t cuts[] = {0, VAULT_ALIGN, n_bytes / 2, n_bytes - 1};
        for (int i = 0; i < 4; i++) {
            smoe_err err = {0};
            expert_resident r;
            assert_int_equal(truncate(f->path, (off_t)cuts[i]), 0);
            ASSERT_FAILS(load(f, NULL, 0, &r, &err), SMOE_IO, &err, "not all there");
            for (uint32_t record = first_record(f); record < end_record(f); record++) {
                write_record(f, record);
            }
        }
        expect_good(f, NULL, 0);
    }
}

/* A read that takes a second: late, and right. */
static void test_slow_read(void **state)
{
    struct fixture *f = *state;
    make_vault(f, &shapes[3]);
    const fault_rule rule = rule_for(f, first_record(f), FAULT_SLOW, 1, 1000);
    uint64_t start_ns = clock_ns();
    expect_good(f, &rule, 1);
    assert_true(clock_ns() - start_ns >= 1000000000u);
}

/* Cancelled, or failed, while slow reads write into the memory: they end before it is freed. */
static void test_ended_during_slow_reads(void **state)
{
    struct fixture *f = *state;
    smoe_err err = {0};
    expert_resident r;
    make_vault(f, &shapes[3]);
    const fault_rule rules[] = {
        rule_for(f, end_record(f) - 1, FAULT_SLOW, 1, 300),
        {FAULT_SLOW, f->offsets[50], UINT64_MAX, FAULT_FOR_EVER, 300},
        everywhere(FAULT_ERROR, FAULT_FOR_EVER, EIO),
    };
    f->cancel_at = 1;
    ASSERT_FAILS(load(f, rules, 2, &r, &err), SMOE_CANCELLED, &err, "cancelled");
    f->cancel_at = 0;
    ASSERT_FAILS(load(f, rules, 3, &r, &err), SMOE_IO, &err, strerror(EIO));
    expect_good(f, NULL, 0);
}

static void test_refused_memory(void **state)
{
    struct fixture *f = *state;
    smoe_status status = SMOE_NOMEM;
    make_vault(f, &shapes[0]);
    for (uint64_t nth = 1; status != SMOE_OK; nth++) {
        smoe_err err = {0};
        expert_resident r;
        const expert_resident_params p = {.vault = &f->v, .pool = f->pool, .kind = AIO_THREADS};
        mem_fail_nth(nth);
        status = expert_resident_init(&r, &p, &err);
        mem_fail_nth(0);
        assert_true(status == SMOE_OK || status == SMOE_NOMEM);
        assert_int_equal(err.code, status);
        expert_resident_fini(&r);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, clean)
    const struct CMUnitTest tests[] = {
        TEST(test_every_shape),
        TEST(test_short_reads),
        TEST(test_eio),
        TEST(test_eio_names_the_records),
        TEST(test_damaged_records),
        TEST(test_wrong_bytes),
        TEST(test_cut_short),
        TEST(test_slow_read),
        TEST(test_ended_during_slow_reads),
        TEST(test_refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
