/* dispatch.c: which kernel table this CPU runs. Asks the CPU and, through it, whether the system
 * saves the wide registers; nothing of a table is touched before. */
#include "quant/kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "quant/kernels_tables.h"

typedef struct candidate {
    const kernels *table;
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

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static bool always(void)
{
    return true;
}

/* Best first. */
static const candidate CANDIDATES[] = {
#if defined(__x86_64__)
    {&kernels_avx512, has_avx512},
    {&kernels_avx2, has_avx2},
#elif defined(__aarch64__)
    {&kernels_neon, always}, /* part of every ARMv8-A core */
#endif
    {&kernels_scalar, always},
};

const kernels *kernels_get(const char *name)
{
    for (size_t i = 0; i < sizeof(CANDIDATES) / sizeof(CANDIDATES[0]); i++) {
        const candidate *c = &CANDIDATES[i];
        if ((name == NULL || strcmp(name, c->table->name) == 0) && c->runs_here()) {
            return c->table;
        }
    }
    return NULL;
}
