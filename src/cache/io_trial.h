/* io_trial.h: how fast this drive delivers records in one way of reading: what the probe at start
 * and `smoe bench io` are made of.
 *
 * Buffered reads must come from the drive to count: what the page cache holds now it will not hold
 * once the ring has filled memory. So a buffered trial first drops each record from the page cache,
 * asks whether it is gone (mincore), reads only those that are, and drops them again. Where the
 * system keeps them or does not say, nothing is measured. Direct reads never see the cache. */
#ifndef CACHE_IO_TRIAL_H
#define CACHE_IO_TRIAL_H

#include "cache/aio.h"

typedef struct io_mode {
    aio_kind kind;
    bool direct;
    uint32_t depth;
} io_mode;

/* A walk over records that comes to each of them once before it begins again, so that trials that
 * follow each other read different ones while there are any. */
typedef struct io_records {
    const file *file;        /* borrowed */
    const uint64_t *offsets; /* [n], borrowed; 0 = no record, as in vault.record_offset */
    uint32_t n;
    uint32_t record_bytes;
    uint32_t at, stride;
} io_records;

/* in_order: neighbour after neighbour; else with a stride that jumps across the file. */
io_records io_records_of(const file *f, const uint64_t *offsets, uint32_t n, uint32_t record_bytes,
                         bool in_order);

typedef struct io_trial_params {
    io_mode mode;
    uint8_t *memory;       /* [mode.depth * record_bytes]; what is read is left there */
    bool is_registered;    /* ask io_uring to register the memory */
    uint64_t max_ns;       /* no read is begun after this; those in flight are waited for */
    uint32_t max_reads;    /* 0 = each record once at most */
} io_trial_params;

typedef struct io_rate {
    uint32_t n_reads;
    uint64_t ns, cpu_ns;   /* elapsed; processor time of this process */
    double bytes_s;        /* 0: every record stayed in the page cache */
    bool is_registered;
} io_rate;

/* SMOE_UNSUPPORTED as aio_open; SMOE_IO when a read fails. */
smoe_status io_trial(io_records *r, const io_trial_params *p, io_rate *out, smoe_err *err);

#endif
