/* test_memory.c: mem, arena, buf, map and rng. */
#include "../../support/test.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rng.h"

static void test_nth_allocation_fails(void **state)
{
    (void)state;
    void *kept = mem_alloc(8);
    mem_fail_nth(2);
    void *first = mem_alloc(1);
    assert_non_null(first);
    assert_null(mem_realloc(kept, 100)); /* kept is untouched */
    void *third = mem_alloc(1);
    assert_non_null(third);
    mem_fail_nth(1);
    assert_null(mem_pages_alloc(4096));
    mem_fail_nth(1);
    assert_null(mem_strdup("x"));
    mem_fail_nth(0);
    mem_free(kept);
    mem_free(first);
    mem_free(third);
}

static void test_allocations_are_counted(void **state)
{
    (void)state;
    uint64_t before = mem_alloc_count();
    mem_free(mem_alloc(0));
    mem_free(mem_calloc(0, 0));
    mem_free(mem_strndup("abc", 2));
    assert_int_equal(mem_alloc_count() - before, 3);
    assert_null(mem_calloc(SIZE_MAX / 2, 3));
}

static void test_pages(void **state)
{
    (void)state;
    unsigned char *p = mem_pages_alloc(3 << 20);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % (2 << 20), 0);
    for (size_t i = 0; i < 3 << 20; i += 4096) {
        assert_int_equal(p[i], 0);
        p[i] = 1;
    }
    mem_pages_free(p, 3 << 20);
    assert_null(mem_pages_alloc(0));
    assert_null(mem_pages_alloc(SIZE_MAX));
    mem_pages_free(NULL, 10);
}

static void test_arena(void **state)
{
    (void)state;
    arena a;
    arena_init(&a);
    char *kept[500];
    for (size_t i = 0; i < 500; i++) {
        size_t n = i * 37 % 5000;
        kept[i] = arena_alloc(&a, n);
        assert_non_null(kept[i]);
        assert_int_equal((uintptr_t)kept[i] % 16, 0);
        for (size_t j = 0; j < n; j++) {
            assert_int_equal(kept[i][j], 0);
        }
        memset(kept[i], (int)i, n);
    }
    for (size_t i = 0; i < 500; i++) {
        for (size_t j = 0; j < i * 37 % 5000; j++) {
            assert_int_equal((unsigned char)kept[i][j], i & 255);
        }
    }
    assert_string_equal(arena_strndup(&a, "hello", 4), "hell");
    assert_true(slice_is(arena_slice(&a, slice_from("xyz")), "xyz"));
    assert_null(arena_array(&a, SIZE_MAX / 2, 3));
    assert_null(arena_alloc(&a, SIZE_MAX - 8));
    arena_fini(&a);
    arena_fini(&a);
}

static void test_buf_has_a_cap(void **state)
{
    (void)state;
    smoe_err err;
    buf b;
    buf_init(&b, 10);
    ASSERT_OK(buf_puts(&b, "12345", &err), &err);
    ASSERT_OK(buf_printf(&b, &err, "%d", 678), &err);
    ASSERT_FAILS(buf_append(&b, "abc", 3, &err), SMOE_RANGE, &err, "10");
    ASSERT_FAILS(buf_reserve(&b, SIZE_MAX, &err), SMOE_RANGE, &err, "10");
    ASSERT_FAILS(buf_printf(&b, &err, "%s", "abc"), SMOE_RANGE, &err, "10");
    assert_string_equal(b.data, "12345678"); /* what failed left nothing behind */
    ASSERT_OK(buf_putc(&b, '9', &err), &err);
    buf_drop_front(&b, 6);
    assert_string_equal(b.data, "789");
    char *taken = buf_take(&b);
    assert_string_equal(taken, "789");
    mem_free(taken);
    assert_int_equal(b.len, 0);
    ASSERT_OK(buf_puts(&b, "again", &err), &err);
    buf_clear(&b);
    assert_int_equal(b.len, 0);
    buf_fini(&b);
    char *empty = buf_take(&b);
    assert_string_equal(empty, "");
    mem_free(empty);
}

static void test_buf_survives_refusal(void **state)
{
    (void)state;
    smoe_err err;
    buf b;
    buf_init(&b, 1 << 20);
    ASSERT_OK(buf_puts(&b, "kept", &err), &err);
    mem_fail_nth(1);
    assert_int_equal(buf_reserve(&b, 100000, &err), SMOE_NOMEM);
    mem_fail_nth(0);
    assert_string_equal(b.data, "kept");
    buf_fini(&b);
}

static void test_map(void **state)
{
    (void)state;
    enum { N = 5000 };
    static char keys[N][12];
    map m;
    uint64_t value;
    map_init(&m);
    assert_false(map_get(&m, slice_from("x"), &value));
    for (uint64_t i = 0; i < N; i++) {
        snprintf(keys[i], sizeof keys[i], "key%llu", (unsigned long long)i);
        assert_true(map_put(&m, slice_from(keys[i]), i));
    }
    assert_true(map_put(&m, slice_from(keys[7]), 70)); /* replaces */
    assert_true(map_put(&m, (slice){NULL, 0}, 5));     /* the empty key is a key */
    assert_int_equal(m.n_entries, N + 1);
    for (uint64_t i = 0; i < N; i++) {
        assert_true(map_get(&m, slice_from(keys[i]), &value));
        assert_int_equal(value, i == 7 ? 70 : i);
    }
    assert_true(map_get(&m, slice_from(""), &value));
    assert_int_equal(value, 5);
    assert_false(map_get(&m, slice_from("key"), &value));
    assert_false(map_reserve(&m, SIZE_MAX / 4));
    map_fini(&m);
}

static void test_hash_is_the_published_one(void **state)
{
    (void)state;
    /* XXH3-64 of nothing, as its reference implementation documents it. */
    assert_true(hash_bytes("", 0) == 0x2d06800538d394c2u);
}

static void test_rng(void **state)
{
    (void)state;
    /* The first values of splitmix64 for the seed 1234567, as published with its C code. */
    static const uint64_t want[] = {6457827717110365317u, 3203168211198807973u,
                                    9817491932198370423u, 4593380528125082431u,
                                    16408922859458223821u};
    rng r = {1234567};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        assert_true(rng_next(&r) == want[i]);
    }
    double sum = 0;
    for (int i = 0; i < 10000; i++) {
        double x = rng_uniform(&r);
        assert_true(x >= 0 && x < 1);
        sum += x;
    }
    assert_true(sum > 4900 && sum < 5100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nth_allocation_fails),
        cmocka_unit_test(test_allocations_are_counted),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_buf_has_a_cap),
        cmocka_unit_test(test_buf_survives_refusal),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_hash_is_the_published_one),
        cmocka_unit_test(test_rng),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
