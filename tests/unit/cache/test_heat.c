/* test_heat.c: counts of experts: how they fade, their file there and back, and every file that is
 * not theirs. */
#include "../../support/test.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "cache/heat.h"

enum { N_LAYER = 3, N_EXPERT = 5, N_IDS = N_LAYER * N_EXPERT, FILE_BYTES = 52 + 4 * N_IDS + 8 };

struct fixture {
    char dir[64], path[128];
    vault v;
    uint64_t offsets[N_IDS];
};

static int make(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    test_dir_make(f->dir);
    snprintf(f->path, sizeof f->path, "%s/v.smoe.heat", f->dir);
    for (int i = N_EXPERT; i < N_IDS; i++) { /* layer 0 is dense */
        f->offsets[i] = 16384 * (uint64_t)i;
    }
    f->v = (vault){.lineage = "0123456789abcdef0123456789abcdef", .n_layer = N_LAYER,
                   .n_expert = N_EXPERT, .n_records = N_IDS - N_EXPERT,
                   .record_offset = f->offsets};
    *state = f;
    return 0;
}

static int clean(void **state)
{
    struct fixture *f = *state;
    test_dir_remove(f->dir);
    free(f);
    return 0;
}

static heat new_heat(const struct fixture *f)
{
    heat h;
    smoe_err err;
    ASSERT_OK(heat_init(&h, &f->v, &err), &err);
    return h;
}

/* Record 5 + i is demanded i times. */
static heat counted_heat(const struct fixture *f)
{
    heat h = new_heat(f);
    for (uint32_t i = N_EXPERT; i < N_IDS; i++) {
        for (uint32_t n = 0; n < i - N_EXPERT; n++) {
            heat_count(&h, i);
        }
    }
    return h;
}

static void save_counted(const struct fixture *f)
{
    smoe_err err;
    heat h = counted_heat(f);
    ASSERT_OK(heat_save(&h, f->path, &err), &err);
    heat_fini(&h);
}

static void read_bytes(const struct fixture *f, uint8_t bytes[FILE_BYTES])
{
    FILE *in = fopen(f->path, "rb");
    assert_non_null(in);
    assert_int_equal(fread(bytes, 1, FILE_BYTES, in), FILE_BYTES);
    assert_int_equal(fgetc(in), EOF);
    fclose(in);
}

static void write_bytes(const struct fixture *f, const void *bytes, size_t n_bytes)
{
    FILE *out = fopen(f->path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, n_bytes, out), n_bytes);
    fclose(out);
}

/* With the checksum that fits. */
static void write_sealed(const struct fixture *f, uint8_t bytes[FILE_BYTES])
{
    uint64_t hash = hash_bytes(bytes, FILE_BYTES - 8);
    for (int i = 0; i < 8; i++) {
        bytes[FILE_BYTES - 8 + i] = (uint8_t)(hash >> 8 * i);
    }
    write_bytes(f, bytes, FILE_BYTES);
}

/* It is refused, with this in the sentence, and the counts stay. */
static void expect_refusal(const struct fixture *f, const char *part)
{
    smoe_err err;
    heat h = new_heat(f);
    heat_count(&h, 7);
    ASSERT_FAILS(heat_load(&h, f->path, &err), SMOE_FORMAT, &err, part);
    assert_non_null(strstr(err.text, f->path));
    assert_int_equal(h.counts[7], 1);
    assert_int_equal(h.sum, 1);
    heat_fini(&h);
}

static void test_there_and_back(void **state)
{
    const struct fixture *f = *state;
    smoe_err err;
    heat h = counted_heat(f), back = new_heat(f);
    assert_true(h.is_changed);
    ASSERT_OK(heat_load(&back, f->path, &err), &err); /* no file yet */
    assert_int_equal(back.sum, 0);
    ASSERT_OK(heat_save(&h, f->path, &err), &err);
    assert_false(h.is_changed);
    ASSERT_OK(heat_load(&back, f->path, &err), &err);
    assert_memory_equal(back.counts, h.counts, sizeof *h.counts * N_IDS);
    assert_int_equal(back.sum, h.sum);
    assert_false(back.is_changed);
    ASSERT_OK(heat_save(&back, f->path, &err), &err); /* over the old one */
    heat_fini(&h);
    heat_fini(&back);
}

/* The bytes are those that heat.h describes, on every machine. */
static void test_the_bytes(void **state)
{
    const struct fixture *f = *state;
    uint8_t bytes[FILE_BYTES];
    save_counted(f);
    read_bytes(f, bytes);
    assert_memory_equal(bytes, "smoeheat\1\0\0\0\3\0\0\0\5\0\0\0", 20);
    assert_memory_equal(bytes + 20, f->v.lineage, 32);
    assert_memory_equal(bytes + 52 + 4 * 14, "\x09\0\0\0", 4);
    write_sealed(f, bytes);
    smoe_err err;
    heat h = new_heat(f);
    ASSERT_OK(heat_load(&h, f->path, &err), &err);
    heat_fini(&h);
}

static void test_counts_fade(void **state)
{
    const struct fixture *f = *state;
    heat h = new_heat(f);
    for (int i = 0; i < 1000; i++) {
        heat_count(&h, 6);
    }
    for (int i = 0; i < 200000; i++) {
        heat_count(&h, 7 + (uint32_t)i % 3);
        assert_true(h.sum < 2048 * f->v.n_records);
    }
    assert_true(h.counts[6] < 10);
    assert_true(h.counts[7] > 2000);
    assert_int_equal(h.sum, (uint64_t)h.counts[6] + h.counts[7] + h.counts[8] + h.counts[9]);
    heat_fini(&h);
}

static void test_damage(void **state)
{
    const struct fixture *f = *state;
    uint8_t bytes[FILE_BYTES + 1] = {0};
    save_counted(f);
    read_bytes(f, bytes);
    for (size_t i = 0; i < FILE_BYTES; i++) {
        bytes[i] ^= 0x10;
        write_bytes(f, bytes, FILE_BYTES);
        expect_refusal(f, "damaged");
        bytes[i] ^= 0x10;
    }
    for (size_t n = 0; n < FILE_BYTES; n++) {
        write_bytes(f, bytes, n);
        expect_refusal(f, "damaged");
    }
    write_bytes(f, bytes, FILE_BYTES + 1);
    smoe_err err;
    heat h = new_heat(f);
    ASSERT_FAILS(heat_load(&h, f->path, &err), SMOE_RANGE, &err, f->path);
    unlink(f->path);
    assert_int_equal(mkdir(f->path, 0777), 0);
    ASSERT_FAILS(heat_load(&h, f->path, &err), SMOE_IO, &err, "not a regular file");
    ASSERT_FAILS(heat_save(&h, f->path, &err), SMOE_IO, &err, f->path);
    heat_fini(&h);
}

static void test_another_models_history(void **state)
{
    struct fixture *f = *state;
    const vault own = f->v;
    save_counted(f);
    f->v.lineage[31] = '0';
    expect_refusal(f, "another lineage");
    f->v = own;
    f->v.n_expert = N_LAYER; /* as many records, otherwise arranged */
    f->v.n_layer = N_EXPERT;
    expect_refusal(f, "5 layers of 3");
    f->v = own;
    f->v.n_layer = N_LAYER - 1;
    uint8_t bytes[FILE_BYTES];
    read_bytes(f, bytes);
    smoe_err err;
    heat h = new_heat(f);
    ASSERT_FAILS(heat_load(&h, f->path, &err), SMOE_RANGE, &err, f->path);
    heat_fini(&h);
    f->v = own;
    bytes[8] = 2;
    write_sealed(f, bytes);
    expect_refusal(f, "version 2");
}

static void test_counts_that_cannot_be(void **state)
{
    const struct fixture *f = *state;
    uint8_t bytes[FILE_BYTES];
    save_counted(f);
    read_bytes(f, bytes);
    bytes[52] = 1;
    write_sealed(f, bytes);
    expect_refusal(f, "expert 0 of layer 0"); /* which has no records */
    bytes[52] = 0;
    bytes[52 + 4 * 9 + 3] = 0xff;
    write_sealed(f, bytes);
    expect_refusal(f, "expert 4 of layer 1");
}

static void test_refused_memory(void **state)
{
    const struct fixture *f = *state;
    smoe_err err;
    smoe_status status = SMOE_NOMEM;
    for (uint64_t nth = 1; status != SMOE_OK; nth++) {
        heat h = {0};
        mem_fail_nth(nth);
        status = heat_init(&h, &f->v, &err);
        status = status == SMOE_OK ? heat_save(&h, f->path, &err) : status;
        status = status == SMOE_OK ? heat_load(&h, f->path, &err) : status;
        mem_fail_nth(0);
        assert_true(status == SMOE_OK || status == SMOE_NOMEM);
        heat_fini(&h);
    }
}

/* A writer that is killed at any moment leaves a whole file, and what it left besides is removed by
 * the next one. */
static void test_killed_while_writing(void **state)
{
    const struct fixture *f = *state;
    smoe_err err;
    save_counted(f);
    for (unsigned i = 0; i < 25; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            heat h = counted_heat(f);
            for (;;) {
                heat_save(&h, f->path, NULL);
            }
        }
        usleep(i * 400);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        heat h = new_heat(f);
        ASSERT_OK(heat_load(&h, f->path, &err), &err);
        assert_int_equal(h.counts[N_IDS - 1], 9);
        heat_fini(&h);
    }
    save_counted(f);
    char command[160];
    snprintf(command, sizeof command, "test \"$(ls -A '%s')\" = v.smoe.heat", f->dir);
    assert_int_equal(system(command), 0);
}

#define WITH_FILE(f) cmocka_unit_test_setup_teardown(f, make, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FILE(test_there_and_back),        WITH_FILE(test_the_bytes),
        WITH_FILE(test_counts_fade),           WITH_FILE(test_damage),
        WITH_FILE(test_another_models_history), WITH_FILE(test_counts_that_cannot_be),
        WITH_FILE(test_refused_memory),        WITH_FILE(test_killed_while_writing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
