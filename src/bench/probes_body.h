/* probes_body.h: the probes of one vector instruction set. The including file defines `vec` (an
 * integer vector), `fvec`, and one step each of: load and xor, integer dot, float multiply-add.
 * Twelve chains hide the latency of every one of them. */
#include "bench/probes.h"

enum { N_CHAINS = 12 };

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
/* The compiler must take v for used and changed. */
#define KEEP(v) __asm__ volatile("" : KEEP_IN(v))

static uint64_t read_wide(const void *p, size_t n_bytes)
{
    const uint8_t *bytes = p;
    vec sums[8] = {vec_zero(), vec_zero(), vec_zero(), vec_zero(),
                   vec_zero(), vec_zero(), vec_zero(), vec_zero()};

    for (size_t i = 0; i < n_bytes; i += sizeof(sums)) {
        UNROLL
        for (int l = 0; l < 8; l++) {
            sums[l] = vec_xor_load(sums[l], bytes + i + (size_t)l * sizeof(vec));
        }
    }
    UNROLL
    for (int l = 0; l < 8; l++) {
        KEEP(sums[l]);
    }
    return 0;
}

static double int_dots(uint64_t n)
{
    vec a[N_CHAINS], w = vec_zero(), x = vec_zero();

    UNROLL
    for (int l = 0; l < N_CHAINS; l++) {
        a[l] = vec_zero();
        KEEP(a[l]); /* else all chains are one */
    }
    for (uint64_t i = 0; i < n; i++) {
        KEEP(w);
        KEEP(x);
        UNROLL
        for (int l = 0; l < N_CHAINS; l++) {
            a[l] = vec_dot(a[l], w, x);
        }
    }
    UNROLL
    for (int l = 0; l < N_CHAINS; l++) {
        KEEP(a[l]);
    }
    return 2.0 * N_CHAINS * sizeof(vec) * (double)n;
}

static double float_fmas(uint64_t n)
{
    fvec a[N_CHAINS], w = fvec_zero(), x = fvec_zero();

    UNROLL
    for (int l = 0; l < N_CHAINS; l++) {
        a[l] = fvec_zero();
        KEEP(a[l]);
    }
    for (uint64_t i = 0; i < n; i++) {
        KEEP(w);
        KEEP(x);
        UNROLL
        for (int l = 0; l < N_CHAINS; l++) {
            a[l] = fvec_fma(a[l], w, x);
        }
    }
    UNROLL
    for (int l = 0; l < N_CHAINS; l++) {
        KEEP(a[l]);
    }
    return 2.0 * N_CHAINS * sizeof(fvec) / sizeof(float) * (double)n;
}

const probes PROBES_TABLE = {PROBES_ISA, read_wide, int_dots, float_fmas};
