/* probes.h: the limits of this machine that the kernels are measured against, one set per
 * instruction set. */
#ifndef BENCH_PROBES_H
#define BENCH_PROBES_H

#include <stddef.h>
#include <stdint.h>

typedef struct probes {
    const char *isa;
    /* Reads n_bytes (a multiple of 1024) with the widest plain loads; returns something that
     * depends on all of them. */
    uint64_t (*read)(const void *p, size_t n_bytes);
    /* n rounds of independent chains; each returns the operations it made, 2 per multiply-add. */
    double (*int_dots)(uint64_t n);
    double (*float_fmas)(uint64_t n);
} probes;

const probes *probes_get(const char *isa); /* "scalar" ...; NULL when there are none */

/* One addition per round, each waiting for the one before: a round is a cycle. */
void probe_cycles(uint64_t n);

#if defined(__x86_64__)
extern const probes probes_avx2, probes_avx2_vnni, probes_avx512;
#elif defined(__aarch64__)
extern const probes probes_neon, probes_neon_dot;
#endif

#endif
