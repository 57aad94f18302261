/* dispatch.c: which kernel tables this CPU runs. Asks the CPU and, through it, whether the system
 * saves the wide registers; nothing of a table is touched before. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include "quant/kernels_tables.h"
#include "quant/panel_tables.h"

#if defined(__x86_64__)
/* __builtin_cpu_supports says yes only if XGETBV shows that the system saves the registers. */
static bool has_avx2(void)
{
    unsigned eax, ebx, ecx, edx;

    /* Not every compiler lets __builtin_cpu_supports ask for f16c. */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C) != 0;
}

static bool has_avx2_vnni(void)
{
    unsigned eax, ebx, ecx, edx;

    return has_avx2() && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & 1u << 4) != 0;
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static bool has_avx512_vnni(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512vnni");
}
#elif defined(__aarch64__)
static bool has_dot_product(void)
{
#if defined(__linux__)
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
    return true; /* every 64-bit Mac */
#endif
}
#endif

static bool always(void)
{
    return true;
}

typedef struct candidate {
    const char *name;
    const kernels *table;
    bool (*runs_here)(void);
} candidate;

/* Best first. */
static const candidate CANDIDATES[] = {
#if defined(__x86_64__)
    {"avx512", &kernels_avx512, has_avx512},
    {"avx2", &kernels_avx2, has_avx2},
    {"avx2_vnni", &kernels_avx2, has_avx2_vnni},
#elif defined(__aarch64__)
    {"neon", &kernels_neon, always}, /* part of every ARMv8-A core */
    {"neon_dot", &kernels_neon, has_dot_product},
#endif
    {"scalar", &kernels_scalar, always},
};

typedef struct panel_candidate {
    const panel_kernels *table;
    bool (*runs_here)(void);
} panel_candidate;

static const panel_candidate PANEL_CANDIDATES[] = {
#if defined(__x86_64__)
    {&panel_kernels_avx512, has_avx512_vnni},
    {&panel_kernels_avx2_vnni, has_avx2_vnni},
    {&panel_kernels_avx2, has_avx2},
#elif defined(__aarch64__)
    {&panel_kernels_neon_dot, has_dot_product},
    {&panel_kernels_neon, always},
#endif
    {&panel_kernels_scalar, always},
};

static bool is_asked_for(const char *name, const char *table_name)
{
    return name == NULL || strcmp(name, table_name) == 0;
}

const kernels *kernels_get(const char *name)
{
    for (size_t i = 0; i < sizeof(CANDIDATES) / sizeof(CANDIDATES[0]); i++) {
        const candidate *c = &CANDIDATES[i];
        if (is_asked_for(name, c->name) && c->runs_here()) {
            return c->table;
        }
    }
    return NULL;
}

const panel_kernels *panel_kernels_get(const char *name)
{
    for (size_t i = 0; i < sizeof(PANEL_CANDIDATES) / sizeof(PANEL_CANDIDATES[0]); i++) {
        const panel_candidate *c = &PANEL_CANDIDATES[i];
        if (is_asked_for(name, c->table->name) && c->runs_here()) {
            return c->table;
        }
    }
    return NULL;
}
