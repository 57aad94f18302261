/* test_cpu.c: cores and memory under cgroups of both versions, nested, limited and not.
 *
 * cpu.c is compiled in here with an fopen that takes a path below the test's directory and an
 * affinity mask of the test's choice, so that the machine's own limits do not matter. */
#include "../../support/test.h"

#include <limits.h>
#include <sched.h>
#include <sys/stat.h>

static char top_dir[64];
static int n_affine; /* cores of the affinity mask */

static FILE *open_below_top(const char *path, const char *mode)
{
    char below[2 * PATH_MAX + 256];
    snprintf(below, sizeof below, "%s%s", top_dir, path);
    return fopen(below, mode);
}

#define fopen open_below_top
#ifdef __linux__
static int own_affinity(pid_t pid, size_t size, cpu_set_t *set)
{
    (void)pid;
    (void)size;
    CPU_ZERO(set);
    for (int i = 0; i < n_affine; i++) {
        CPU_SET(2 * i + 1, set);
    }
    return 0;
}
#define sched_getaffinity own_affinity
#endif
#include "base/cpu.c"
#undef fopen

/* A file of the tree, with the folders that it needs. */
static void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", top_dir, path);
    for (char *slash = full + strlen(top_dir) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
    (void)state;
    test_dir_make(top_dir);
    n_affine = 8;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_dir_remove(top_dir);
    return 0;
}

#define V2_MOUNT "31 23 0:28 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n"
#define V1_MOUNTS                                                            \
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"             \
    "32 31 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"      \
    "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"    \
    "34 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"

static void test_affinity_alone(void **state)
{
    (void)state;
#ifdef __linux__
    assert_int_equal(cpu_n_cores(), 8); /* no /proc at all */
    n_affine = 3;
    assert_int_equal(cpu_n_cores(), 3);
    put("/proc/self/cgroup", "0::/\n");
    assert_int_equal(cpu_n_cores(), 3); /* no mounts */
    put("/proc/self/mountinfo", V2_MOUNT);
    assert_int_equal(cpu_n_cores(), 3); /* the root group has no cpu.max */
    n_affine = 1;
    put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
    assert_int_equal(cpu_n_cores(), 1); /* the smaller of both */
#endif
}

static void test_quota_v2(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t n;
    } cases[] = {
        {"max 100000\n", 8},     {"300000 100000\n", 3},  {"150000 100000\n", 2},
        {"1000 100000\n", 1},    {"1600000 100000\n", 8}, {"9223372036854775807 100000\n", 8},
        {"100000\n", 8},         {"", 8},                 {"0 100000\n", 8},
        {"-100000 100000\n", 8}, {"200000 0\n", 8},       {"nonsense\n", 8},
    };
    put("/proc/self/cgroup", "0::/a.slice/b.scope\n");
    put("/proc/self/mountinfo", "22 1 0:20 / /proc rw - proc proc rw\n" V2_MOUNT);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put("/sys/fs/cgroup/a.slice/b.scope/cpu.max", cases[i].text);
        assert_int_equal(cpu_n_cores(), cases[i].n);
    }
    put("/sys/fs/cgroup/a.slice/b.scope/cpu.max", "400000 100000\n");
    put("/sys/fs/cgroup/a.slice/cpu.max", "200000 100000\n");
    assert_int_equal(cpu_n_cores(), 2); /* a parent's limit holds too */
    put("/sys/fs/cgroup/a.slice/cpu.max", "max 100000\n");
    assert_int_equal(cpu_n_cores(), 4);
}

static void test_quota_v1(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "5:cpuset:/other\n4:memory:/m\n3:cpuacct,cpu:/jobs/one\n0::/\n");
    put("/proc/self/mountinfo", V1_MOUNTS);
    put("/sys/fs/cgroup/cpuset/other/cpu.cfs_quota_us", "100000\n"); /* another controller's */
    put("/sys/fs/cgroup/cpuset/other/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cpu_n_cores(), 8);
    put("/sys/fs/cgroup/cpu/jobs/one/cpu.cfs_period_us", "50000\n");
    put("/sys/fs/cgroup/cpu/jobs/one/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(cpu_n_cores(), 8);
    put("/sys/fs/cgroup/cpu/jobs/one/cpu.cfs_quota_us", "250000\n");
    assert_int_equal(cpu_n_cores(), 5);
    put("/sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "110000\n");
    assert_int_equal(cpu_n_cores(), 2);
}

/* Controllers whose names begin alike, together on one mount. */
static void test_shared_mount_v1(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "1:cpuset,cpu,cpuacct:/\n");
    put("/proc/self/mountinfo", "7 1 0:9 / /cg rw - cgroup cgroup rw,cpuset,cpu,cpuacct\n");
    put("/cg/cpu.cfs_period_us", "100000\n");
    put("/cg/cpu.cfs_quota_us", "300000\n");
    assert_int_equal(cpu_n_cores(), 3);
}

/* In a container the mount's root is the process's own group, or a parent of it. */
static void test_mount_of_a_subtree(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/box/one/inner\n");
    put("/proc/self/mountinfo", "9 1 0:28 /box/one /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
    put("/sys/fs/cgroup/inner/cpu.max", "300000 100000\n");
    assert_int_equal(cpu_n_cores(), 3);
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    assert_int_equal(cpu_n_cores(), 2);
    put("/proc/self/cgroup", "0::/box/one\n");
    assert_int_equal(cpu_n_cores(), 2);
    /* A neighbour whose name begins alike is not below that root. */
    put("/proc/self/cgroup", "0::/box/oneinner\n");
    put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/inner/cpu.max", "100000 100000\n");
    assert_int_equal(cpu_n_cores(), 8);
}

static void test_memory(void **state)
{
    (void)state;
    const uint64_t mib = 1 << 20;
    assert_true(mem_available_bytes() == 0); /* the system does not say */
    put("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    4096 kB\n");
    assert_true(mem_available_bytes() == 4 * mib);
    put("/proc/self/cgroup", "4:memory:/m\n0::/a\n");
    put("/proc/self/mountinfo", V1_MOUNTS V2_MOUNT);
    put("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    put("/sys/fs/cgroup/memory/m/memory.usage_in_bytes", "1048576\n");
    put("/sys/fs/cgroup/a/memory.max", "max\n");
    put("/sys/fs/cgroup/a/memory.current", "1048576\n");
    assert_true(mem_available_bytes() == 4 * mib);
    put("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "4194304\n");
    assert_true(mem_available_bytes() == 3 * mib);
    put("/sys/fs/cgroup/a/memory.max", "2097152\n");
    assert_true(mem_available_bytes() == mib);
    put("/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 524288\n"); /* can be given back */
    assert_true(mem_available_bytes() == mib + mib / 2);
    put("/sys/fs/cgroup/a/memory.current", "8388608\n"); /* over the limit: nothing, but not 0 */
    assert_true(mem_available_bytes() == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_affinity_alone, set_up, tear_down),
#ifdef __linux__
        cmocka_unit_test_setup_teardown(test_quota_v2, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_quota_v1, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shared_mount_v1, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_mount_of_a_subtree, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory, set_up, tear_down),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
