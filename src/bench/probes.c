/* probes.c: the probes of plain C, and which set belongs to which instruction set. */
#include "bench/probes.h"

#include <math.h>
#include <string.h>

static uint64_t read_plain(const void *p, size_t n_bytes)
{
    const uint8_t *bytes = p;
    uint64_t sums[8] = {0};

    for (size_t i = 0; i < n_bytes; i += sizeof(sums)) {
        uint64_t words[8];
        memcpy(words, bytes + i, sizeof(words));
        for (int l = 0; l < 8; l++) {
            sums[l] ^= words[l];
        }
    }
    return sums[0] ^ sums[1] ^ sums[2] ^ sums[3] ^ sums[4] ^ sums[5] ^ sums[6] ^ sums[7];
}

static double int_dots_plain(uint64_t n)
{
    volatile uint32_t keep;
    uint32_t a[8] = {1, 2, 3, 4, 5, 6, 7, 8};

    for (uint64_t i = 0; i < n; i++) {
        for (int l = 0; l < 8; l++) {
            a[l] += (a[l] | 1) * 3;
        }
    }
    keep = a[0] + a[1] + a[2] + a[3] + a[4] + a[5] + a[6] + a[7];
    (void)keep;
    return 16.0 * (double)n;
}

static double float_fmas_plain(uint64_t n)
{
    volatile float keep;
    float a[8] = {1, 2, 3, 4, 5, 6, 7, 8};

    for (uint64_t i = 0; i < n; i++) {
        for (int l = 0; l < 8; l++) {
            a[l] = fmaf(a[l], 0.5f, 1.0f);
        }
    }
    keep = a[0] + a[1] + a[2] + a[3] + a[4] + a[5] + a[6] + a[7];
    (void)keep;
    return 16.0 * (double)n;
}

static const probes PROBES_SCALAR = {"scalar", read_plain, int_dots_plain, float_fmas_plain};

const probes *probes_get(const char *isa)
{
    const probes *all[] = {
        &PROBES_SCALAR,
#if defined(__x86_64__)
        &probes_avx2, &probes_avx2_vnni, &probes_avx512,
#elif defined(__aarch64__)
        &probes_neon, &probes_neon_dot,
#endif
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(isa, all[i]->isa) == 0) {
            return all[i];
        }
    }
    return NULL;
}

void probe_cycles(uint64_t n)
{
    uint64_t a = n;

    for (uint64_t i = 0; i < n; i += 16) {
#define ADD a += i; __asm__ volatile("" : "+r"(a));
        ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD
#undef ADD
    }
}
