/* panel_dispatch.c: which table of panel kernels this CPU runs. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include "quant/panel_tables.h"

typedef struct candidate {
    const panel_kernels *table;
    bool (*runs_here)(void);
} candidate;

#if defined(__x86_64__)
/* __builtin_cpu_supports says yes only if XGETBV shows that the system saves the registers. */
static bool has_avx2(void)
{
    unsigned eax, ebx, ecx, edx;

    /* Not every compiler lets __builtin_cpu_supports ask for f16c. */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C) != 0;
}

static bool has_avx512_vnni(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
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

/* Best first. */
static const candidate CANDIDATES[] = {
#if defined(__x86_64__)
    {&panel_kernels_avx512, has_avx512_vnni},
    {&panel_kernels_avx2, has_avx2},
#elif defined(__aarch64__)
    {&panel_kernels_neon_dot, has_dot_product},
    {&panel_kernels_neon, always},
#endif
    {&panel_kernels_scalar, always},
};

const panel_kernels *panel_kernels_get(const char *name)
{
    for (size_t i = 0; i < sizeof(CANDIDATES) / sizeof(CANDIDATES[0]); i++) {
        const candidate *c = &CANDIDATES[i];
        if ((name == NULL || strcmp(name, c->table->name) == 0) && c->runs_here()) {
            return c->table;
        }
    }
    return NULL;
}
