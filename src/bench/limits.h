/* limits.h: what this machine can do at best, measured with the threads that the engine uses: bytes
 * read from DRAM with plain loads, integer-dot and float multiply-add operations. */
#ifndef BENCH_LIMITS_H
#define BENCH_LIMITS_H

#include <stdint.h>

#include "base/err.h"

typedef struct limits limits;

typedef struct limit_rates {
    double read_bytes_s;
    double int_ops_s, float_ops_s; /* 2 operations per multiply-add */
} limit_rates;

/* Operations are those of the kernel set `isa` (NULL = the best), reads those of the best set: a
 * forced lesser set is still measured against the memory of the machine. SMOE_USAGE when this
 * processor lacks the set. Takes 320 MiB and n_threads threads until limits_free. */
smoe_status limits_new(const char *isa, uint32_t n_threads, limits **out, smoe_err *err);
void limits_free(limits *l);
/* Takes a third of a second. */
limit_rates limits_measure(limits *l);

#endif
