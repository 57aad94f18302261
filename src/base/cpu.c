/* cpu.c: see cpu.h. Reads /proc and /sys only; on systems without them it says 0, or all cores. */
#include "base/cpu.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* First line of a small file; false when it cannot be read. */
static bool read_line(const char *path, char *line, size_t size)
{
    FILE *f = fopen(path, "re");
    if (!f) {
        return false;
    }
    bool ok = fgets(line, (int)size, f) != NULL;
    fclose(f);
    if (ok) {
        line[strcspn(line, "\n")] = '\0';
    }
    return ok;
}

static bool read_u64(const char *path, uint64_t *value)
{
    char line[64], *end;
    if (!read_line(path, line, sizeof line)) {
        return false;
    }
    unsigned long long v = strtoull(line, &end, 10);
    *value = v;
    return end != line && *end == '\0'; /* "max" is no number: no limit */
}

/* Where a cgroup controller is mounted and which group this process is in. */
struct cgroup {
    char mount[PATH_MAX];
    char group[PATH_MAX];
};

/* Whether a list that commas separate has this entry. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    while (strncmp(list, word, n) != 0 || (list[n] != ',' && list[n] != '\0')) {
        list = strchr(list, ',');
        if (!list) {
            return false;
        }
        list++;
    }
    return true;
}

/* controller NULL = the unified hierarchy (v2). */
static bool find_cgroup(const char *controller, struct cgroup *cg)
{
    char line[PATH_MAX + 256];
    bool found = false;
    FILE *f = fopen("/proc/self/cgroup", "re"); /* id:controllers:/group */
    while (f && !found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *names = strchr(line, ':');
        char *group = names ? strchr(names + 1, ':') : NULL;
        if (!group) {
            continue;
        }
        *group++ = '\0';
        names++;
        found = controller ? has_word(names, controller) : *names == '\0';
        if (found) {
            snprintf(cg->group, sizeof cg->group, "%s", strcmp(group, "/") == 0 ? "" : group);
        }
    }
    if (f) {
        fclose(f);
    }
    if (!found) {
        return false;
    }
    found = false;
    /* id parent dev root mount opts ... - type source super */
    f = fopen("/proc/self/mountinfo", "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        char root[PATH_MAX], mount[PATH_MAX], type[64], super[1024] = "";
        char *dash = strstr(line, " - ");
        if (!dash || sscanf(line, "%*d %*d %*s %4095s %4095s", root, mount) != 2 ||
            sscanf(dash + 3, "%63s %*s %1023s", type, super) < 1) {
            continue;
        }
        found = controller ? strcmp(type, "cgroup") == 0 && has_word(super, controller)
                           : strcmp(type, "cgroup2") == 0;
        if (found) {
            snprintf(cg->mount, sizeof cg->mount, "%s", mount);
            /* In a container the mount may already be our group: then paths start there. */
            size_t n_root = strlen(root);
            char after = strncmp(cg->group, root, n_root) == 0 ? cg->group[n_root] : '?';
            if (n_root > 1 && (after == '\0' || after == '/')) {
                memmove(cg->group, cg->group + n_root, strlen(cg->group + n_root) + 1);
            }
        }
    }
    if (f) {
        fclose(f);
    }
    return found;
}

/* Goes to the parent group; false at the root. */
static bool to_parent(struct cgroup *cg)
{
    char *slash = strrchr(cg->group, '/');
    if (!slash) {
        return false;
    }
    *slash = '\0';
    return true;
}

static bool cgroup_u64(const struct cgroup *cg, const char *name, uint64_t *value)
{
    char path[2 * PATH_MAX + 64];
    snprintf(path, sizeof path, "%s%s/%s", cg->mount, cg->group, name);
    return read_u64(path, value);
}

/* Pages that the group could give back count as free: the kernel reclaims them before it kills. */
static uint64_t cgroup_reclaimable(const struct cgroup *cg, const char *key)
{
    char path[2 * PATH_MAX + 64], name[64];
    unsigned long long value;
    uint64_t n_bytes = 0;
    snprintf(path, sizeof path, "%s%s/memory.stat", cg->mount, cg->group);
    FILE *f = fopen(path, "re");
    while (f && fscanf(f, "%63s %llu", name, &value) == 2) {
        if (strcmp(name, key) == 0) {
            n_bytes = value;
        }
    }
    if (f) {
        fclose(f);
    }
    return n_bytes;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t cgroup_room(const char *controller, const char *limit_name, const char *usage_name,
                            const char *reclaim_key)
{
    struct cgroup cg;
    uint64_t room = UINT64_MAX;
    if (!find_cgroup(controller, &cg)) {
        return room;
    }
    do {
        uint64_t limit, usage;
        if (cgroup_u64(&cg, limit_name, &limit) && cgroup_u64(&cg, usage_name, &usage) &&
            limit < (UINT64_C(1) << 60)) {
            uint64_t reclaimable = min_u64(cgroup_reclaimable(&cg, reclaim_key), usage);
            usage -= reclaimable;
            room = min_u64(room, limit > usage ? limit - usage : 1);
        }
    } while (to_parent(&cg));
    return room;
}

uint64_t mem_available_bytes(void)
{
    uint64_t available = UINT64_MAX;
    char line[128];
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f)) {
        unsigned long long kib;
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) {
            available = (uint64_t)kib * 1024;
        }
    }
    if (f) {
        fclose(f);
    }
    available = min_u64(available, cgroup_room(NULL, "memory.max", "memory.current",
                                               "inactive_file"));
    available = min_u64(available, cgroup_room("memory", "memory.limit_in_bytes",
                                               "memory.usage_in_bytes", "total_inactive_file"));
    return available == UINT64_MAX ? 0 : available;
}

/* Cores that a quota of `quota` per `period` microseconds amounts to, rounded up. */
static uint32_t quota_cores(int64_t quota, int64_t period, uint32_t n)
{
    if (quota <= 0 || period <= 0) {
        return n;
    }
    int64_t cores = quota / period + (quota % period != 0);
    return cores < n ? (uint32_t)cores : n;
}

uint32_t cpu_n_cores(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t n = online > 0 ? (uint32_t)online : 1;
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) {
        n = (uint32_t)CPU_COUNT(&set);
    }
#endif
    struct cgroup cg;
    if (find_cgroup(NULL, &cg)) {
        do {
            char path[2 * PATH_MAX + 64], line[64];
            long long quota, period;
            snprintf(path, sizeof path, "%s%s/cpu.max", cg.mount, cg.group);
            if (read_line(path, line, sizeof line) &&
                sscanf(line, "%lld %lld", &quota, &period) == 2) {
                n = quota_cores(quota, period, n);
            }
        } while (to_parent(&cg));
    }
    if (find_cgroup("cpu", &cg)) {
        do {
            uint64_t quota, period; /* a quota of -1 reads as no number or as a huge one */
            if (cgroup_u64(&cg, "cpu.cfs_quota_us", &quota) && quota < INT64_MAX &&
                cgroup_u64(&cg, "cpu.cfs_period_us", &period) && period < INT64_MAX) {
                n = quota_cores((int64_t)quota, (int64_t)period, n);
            }
        } while (to_parent(&cg));
    }
    return n ? n : 1;
}
