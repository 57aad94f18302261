/* test_file.c: reading by offset, and files that appear only when complete. */
#include "../../support/test.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/mem.h"

static int make_dir(void **state)
{
    char *path = malloc(64);
    test_dir_make(path);
    *state = path;
    return 0;
}

static int remove_dir(void **state)
{
    test_dir_remove(*state);
    free(*state);
    return 0;
}

static void path_in(char out[256], const char *dir, const char *name)
{
    snprintf(out, 256, "%s/%s", dir, name);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static size_t n_files(const char *dir)
{
    size_t n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        n += e->d_name[0] != '.';
    }
    closedir(d);
    return n;
}

static void test_read_at(void **state)
{
    char path[256], data[8] = "";
    smoe_err err;
    file f;
    path_in(path, *state, "a");
    write_file(path, "0123456789");
    ASSERT_OK(file_open(&f, path, &err), &err);
    assert_int_equal(f.size_bytes, 10);
    ASSERT_OK(file_read_at(&f, 3, data, 4, &err), &err);
    assert_memory_equal(data, "3456", 4);
    ASSERT_OK(file_read_at(&f, 10, data, 0, &err), &err);
    ASSERT_FAILS(file_read_at(&f, 8, data, 4, &err), SMOE_IO, &err, "ends at byte 10");
    file_close(&f);
    file_close(&f); /* closing twice is allowed */
}

static void test_open_refuses_what_is_no_file(void **state)
{
    char path[256];
    smoe_err err;
    file f;
    path_in(path, *state, "none");
    ASSERT_FAILS(file_open(&f, path, &err), SMOE_IO, &err, "No such file");
    ASSERT_FAILS(file_open(&f, *state, &err), SMOE_IO, &err, "not a regular file");
    assert_int_equal(f.fd, -1);
    assert_true(file_is_dir(*state));
    assert_false(file_exists(path));
}

static void test_slurp_has_a_limit(void **state)
{
    char path[256];
    smoe_err err;
    buf b;
    path_in(path, *state, "a");
    write_file(path, "hello");
    buf_init(&b, 100);
    ASSERT_FAILS(file_slurp(path, 4, &b, &err), SMOE_RANGE, &err, "at most 4");
    ASSERT_OK(file_slurp(path, 5, &b, &err), &err);
    ASSERT_OK(file_slurp(path, 5, &b, &err), &err);
    assert_string_equal(b.data, "hellohello");
    buf_fini(&b);
}

static void test_writer_is_atomic(void **state)
{
    char path[256];
    smoe_err err;
    file_writer w;
    path_in(path, *state, "out");
    ASSERT_OK(file_create(&w, path, &err), &err);
    ASSERT_OK(file_write(&w, "abc", 3, &err), &err);
    assert_false(file_exists(path)); /* nothing under the final name before commit */
    ASSERT_OK(file_write_at(&w, 0, "X", 1, &err), &err);
    ASSERT_OK(file_write(&w, "def", 3, &err), &err);
    ASSERT_OK(file_commit(&w, &err), &err);
    file_abort(&w); /* safe after commit */
    buf b;
    buf_init(&b, 100);
    ASSERT_OK(file_slurp(path, 100, &b, &err), &err);
    assert_string_equal(b.data, "Xbcdef");
    buf_fini(&b);
    assert_int_equal(n_files(*state), 1);
}

static void test_abort_keeps_the_old_file(void **state)
{
    char path[256];
    smoe_err err;
    file_writer w;
    path_in(path, *state, "out");
    write_file(path, "old");
    ASSERT_OK(file_create(&w, path, &err), &err);
    ASSERT_OK(file_write(&w, "new", 3, &err), &err);
    file_abort(&w);
    file_abort(&w);
    buf b;
    buf_init(&b, 100);
    ASSERT_OK(file_slurp(path, 100, &b, &err), &err);
    assert_string_equal(b.data, "old");
    buf_fini(&b);
    assert_int_equal(n_files(*state), 1);
}

static void test_leftovers_of_dead_runs_go(void **state)
{
    char path[256], dead[256], alive[256], name[64];
    smoe_err err;
    file_writer w;
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    assert_true(waitpid(child, NULL, 0) == child); /* its id is now nobody's */
    path_in(path, *state, "out");
    snprintf(name, sizeof name, "out.partial-%ld", (long)child);
    path_in(dead, *state, name);
    path_in(alive, *state, "out.partial-1"); /* init runs */
    write_file(dead, "half");
    write_file(alive, "half");
    ASSERT_OK(file_create(&w, path, &err), &err);
    assert_false(file_exists(dead));
    assert_true(file_exists(alive));
    file_abort(&w);
}

static void test_create_where_nothing_can_be(void **state)
{
    char path[256];
    smoe_err err;
    file_writer w;
    path_in(path, *state, "no/such/dir/out");
    ASSERT_FAILS(file_create(&w, path, &err), SMOE_IO, &err, "cannot be created");
    file_abort(&w);
    assert_int_equal(n_files(*state), 0);
}

static void test_a_full_disk_leaves_nothing(void **state)
{
    char path[256];
    static char block[1 << 16];
    smoe_err err;
    file_writer w;
    /* A limit on the file's size refuses the write as a full disk does (EFBIG for ENOSPC). */
    struct rlimit old, small = {100000, 0};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    path_in(path, *state, "out");
    ASSERT_OK(file_create(&w, path, &err), &err);
    ASSERT_OK(file_write(&w, block, sizeof block, &err), &err);
    smoe_status status = file_write(&w, block, sizeof block, &err);
    file_abort(&w);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(status, SMOE_IO);
    assert_non_null(strstr(err.text, "nothing was left under that name"));
    assert_int_equal(n_files(*state), 0);
}

static void test_path_join(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"}, {"", "b", "b"}, {"a", "", "a/"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *joined = path_join(cases[i][0], cases[i][1]);
        assert_string_equal(joined, cases[i][2]);
        mem_free(joined);
    }
}

static void test_free_bytes(void **state)
{
    uint64_t n = 0;
    smoe_err err;
    ASSERT_OK(file_free_bytes(*state, &n, &err), &err);
    assert_true(n > 0);
    char path[256];
    path_in(path, *state, "none");
    ASSERT_FAILS(file_free_bytes(path, &n, &err), SMOE_IO, &err, "cannot be read");
}

#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(test_read_at),
        IN_DIR(test_open_refuses_what_is_no_file),
        IN_DIR(test_slurp_has_a_limit),
        IN_DIR(test_writer_is_atomic),
        IN_DIR(test_abort_keeps_the_old_file),
        IN_DIR(test_leftovers_of_dead_runs_go),
        IN_DIR(test_create_where_nothing_can_be),
        IN_DIR(test_a_full_disk_leaves_nothing),
        cmocka_unit_test(test_path_join),
        IN_DIR(test_free_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
