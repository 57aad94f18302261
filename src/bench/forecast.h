/* forecast.h: how fast a model would be on a machine whose limits are known: an estimate.
 *
 *   hits     what an LRU ring of that size hits under the sticky law (routing.h), warm
 *   decode   a token's time = the scout's bytes and the KV cache's at the rate of memory, and then
 *            the longer of: its experts' bytes at the rate of memory, its misses at the drive's.
 *            While misses are read, what is resident is computed; the scout waits for nothing.
 *   prompt   the longer of: its operations at the processor's peak, every expert that the law wants
 *            for it once at the drive's rate, from an empty ring
 *
 * Each limit is reached in part only; FORECAST_* say how far, from docs/performance.md. */
#ifndef BENCH_FORECAST_H
#define BENCH_FORECAST_H

#include "bench/work.h"
#include "engine/memory.h"

/* Parts of a limit that the engine reaches. */
#define FORECAST_OF_DRAM 0.85
#define FORECAST_OF_PEAK 0.35
#define FORECAST_OF_DRIVE 0.90

typedef struct machine {
    double dram_bytes_s, ops_s; /* ops_s: integer, or float for plain types, as the experts are */
    double drive_bytes_s;       /* 0 = not known: nothing that is read is forecast */
    uint64_t available_bytes;   /* of memory; 0 = not known */
    uint32_t n_threads;
} machine;

typedef struct forecast_question {
    const model_config *config;
    const model_work *work;
    uint64_t scout_bytes;
    uint64_t mem_limit_bytes;   /* 0 = what the machine offers */
    uint32_t n_ctx;
    uint32_t n_prompt, n_depth; /* tokens of the prompt; in the context while decoding */
} forecast_question;

typedef struct forecast {
    bool fits;                  /* else only memory is set, and needed_bytes is what it takes */
    uint64_t needed_bytes;      /* for the smallest ring */
    memory_split memory;
    double hit_rate;            /* 1: everything is loaded once, in load_seconds */
    double load_seconds;
    double read_bytes_per_token;
    double decode_tok_s, ttft_seconds; /* 0: the drive's rate is not known */
    const char *decode_bound, *prompt_bound; /* "memory", "disk"; "compute", "disk" */
} forecast;

/* SMOE_RANGE: more than the checkpoint's maximum. For before a measurement that takes seconds. */
smoe_status forecast_check_ctx(const model_config *cfg, uint32_t n_ctx, smoe_err *err);

/* SMOE_NOMEM, SMOE_RANGE when the context is longer than the model's. */
smoe_status forecast_make(const forecast_question *q, const machine *m, forecast *out,
                          smoe_err *err);

#endif
