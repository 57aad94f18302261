/* limits.h: what this machine can do at best, measured with the threads that the engine uses: bytes
 * read from DRAM with plain loads, integer-dot and float multiply-add operations. */
#ifndef BENCH_LIMITS_H
#define BENCH_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/pool.h"

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
/* The threads it measures with, for what is compared with it. */
pool *limits_pool(const limits *l);
/* From now on the operations are those of `isa`. False, and nothing changes, without the set. */
bool limits_select(limits *l, const char *isa);
/* Averages over `ms` milliseconds, at least one pass over the memory: bytes, operations a second.
 * Averages over few jump on machines that others use too. */
double limits_read(limits *l, uint32_t ms);
double limits_int_ops(limits *l, uint32_t ms);
double limits_float_ops(limits *l, uint32_t ms);
/* All of them; takes a third of a second. */
limit_rates limits_measure(limits *l);

#endif
