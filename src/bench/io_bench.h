/* io_bench.h: what the drive under a directory or a model delivers in each way of reading
 * (`smoe bench io`), from cache/io_trial.h: records of one size, 1 to 32 at a time. */
#ifndef BENCH_IO_BENCH_H
#define BENCH_IO_BENCH_H

#include "cache/io_trial.h"

enum {
    IO_BENCH_RECORD_BYTES = 2654208, /* an expert of Qwen3-30B-A3B in q4_K */
    IO_BENCH_N_WAYS = 4,             /* direct io_uring, threads; buffered io_uring, threads */
    IO_BENCH_MAX_REPEAT = 99,
};

/* A file of records to read: of a vault, or made for the purpose. */
typedef struct io_bench_file {
    file f;
    uint64_t *offsets;   /* [n] owned */
    uint32_t n, record_bytes;
    file_writer writer;  /* open = made here: unlinked at close */
} io_bench_file;

typedef struct io_bench_row {
    bool in_order;       /* neighbour after neighbour; else all over the file */
    uint32_t depth;
    /* Medians by way; 0: the system refuses it, or the page cache cannot be kept out. */
    double bytes_s[IO_BENCH_N_WAYS];
    double cpu_s_per_gb[IO_BENCH_N_WAYS]; /* processor time of this process */
} io_bench_row;

typedef struct io_bench_events { /* each may be NULL */
    void *ctx;
    void (*progress)(void *ctx, uint64_t n_done_bytes, uint64_t n_bytes); /* of writing */
    void (*row)(void *ctx, const io_bench_row *row); /* after each row */
    bool (*cancelled)(void *ctx);
} io_bench_events;

/* A file of records of record_bytes (a multiple of AIO_ALIGN), at least n_bytes > 0 in all, in dir:
 * bytes that do not compress, flushed to the drive. A killed
 * run leaves it behind, the next one in that directory removes it. SMOE_RANGE when the file system
 * has no room for it. */
smoe_status io_bench_make(io_bench_file *b, const char *dir, uint64_t n_bytes,
                          uint32_t record_bytes, const io_bench_events *events, smoe_err *err);
/* The records of a vault: offsets [n] as vault.record_offset; copied. */
smoe_status io_bench_open(io_bench_file *b, const char *path, const uint64_t *offsets, uint32_t n,
                          uint32_t record_bytes, smoe_err *err);
void io_bench_close(io_bench_file *b);

io_mode io_bench_way(uint32_t way, uint32_t depth);

/* Six depths, all over the file and in order; each way for trial_ns, n_repeat times in turns.
 * SMOE_IO when a read fails. */
smoe_status io_bench_run(const io_bench_file *b, uint64_t trial_ns, uint32_t n_repeat,
                         const io_bench_events *events, smoe_err *err);

#endif
