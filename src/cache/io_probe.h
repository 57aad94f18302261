/* io_probe.h: which way of reading serves this vault best on this machine (design A6): io_uring or
 * threads, direct or buffered, how many at a time. Real records are read into the ring's own memory
 * for half a second at most, and one sentence says what was chosen and why.
 *
 * What works in more ways is settled by measure, but a way of reading is preferred until another is
 * faster by a tenth: trials are short and machines shared. The order of preference: io_uring before
 * threads (it leaves the processor to the engine), direct before buffered (it leaves the page cache
 * alone, and with it the memory budget), 8 at a time before other depths. What is wished is tried
 * alone. */
#ifndef CACHE_IO_PROBE_H
#define CACHE_IO_PROBE_H

#include "cache/io_wish.h"

enum { IO_PROBE_NS = 500000000, IO_PROBE_SENTENCE_BYTES = 2048 };

typedef struct io_probe_params {
    const file *file;        /* of the vault; borrowed, as the next two */
    const uint64_t *offsets; /* [n_records] of records; 0 = none */
    uint8_t *memory;         /* mem_pages [n_slots * record_bytes]; left with any bytes */
    uint32_t n_records, n_slots;
    uint32_t record_bytes;
    uint32_t n_workers;      /* reads at a time; 0 = what is fastest. At most AIO_MAX_DEPTH */
    io_wish wish;
    uint64_t max_ns;         /* of all trials; IO_PROBE_NS. A drive that is slower than this for the
                              * reads of one trial exceeds it by those */
} io_probe_params;

typedef struct io_probe_result {
    io_mode mode;         /* what to open */
    double bytes_s;       /* in that mode; 0 = there was no time, or nothing to measure */
    double other_bytes_s; /* buffered if mode is direct, and the other way round; 0 = as above */
    smoe_err no_uring;    /* why io_uring does not serve; code SMOE_OK when it could */
    smoe_err no_direct;   /* the same for direct reads */
} io_probe_result;

/* SMOE_NOMEM; SMOE_UNSUPPORTED: the system refuses what is wished. A drive that fails to deliver is
 * reported by the first read that matters. */
smoe_status io_probe(const io_probe_params *p, io_probe_result *out, smoe_err *err);
/* "reads: io_uring, direct, 8 at a time (2.4 GB/s; buffered 1.1 GB/s)", and what did not serve. */
void io_probe_sentence(const io_probe_result *result, char out[IO_PROBE_SENTENCE_BYTES]);

#endif
