/* shatter.h: a Hugging Face checkpoint directory -> a scout and a vault.
 *
 * Two steps. A plan reads config, tokenizer and tensor headers and checks everything that can be
 * known without touching the weights; converting it streams the weights through buffers of fixed
 * size. */
#ifndef SHATTER_SHATTER_H
#define SHATTER_SHATTER_H

#include "base/buf.h"
#include "formats/vault.h"

typedef struct shatter_options {
    const char *checkpoint_dir;
    const char *out_dir;  /* created when it does not exist; NULL = "." */
    const char *stem;     /* of the two files; NULL = the checkpoint directory's base name */
    dtype experts, scout; /* any dtype_weight */
    uint32_t n_threads;   /* 0 = every core this process may use */
} shatter_options;

/* Any member may be NULL. */
typedef struct shatter_events {
    void *ctx;
    void (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
    void (*note)(void *ctx, const char *text); /* a sentence worth reading that stops nothing */
    bool (*cancelled)(void *ctx); /* asked between chunks; true ends in SMOE_CANCELLED */
} shatter_events;

typedef struct shatter_plan shatter_plan;

typedef struct shatter_summary {
    const model_config *config;
    const char *stem_path, *vault_path, *scout_path; /* owned by the plan */
    uint64_t source_bytes;                           /* that will be read */
    uint64_t vault_bytes, scout_bytes;               /* of data, without headers */
    uint64_t record_bytes;
    size_t n_records;
} shatter_summary;

/* Fails on a missing shard, tensor or file, an unknown tensor, a wrong shape or type, an unusable
 * config; every message names the culprit. Writes nothing. */
smoe_status shatter_plan_new(const shatter_options *options, const shatter_events *events,
                             shatter_plan **out, smoe_err *err);
void shatter_plan_free(shatter_plan *plan);
shatter_summary shatter_plan_summary(const shatter_plan *plan);
/* The plan as a table for people: parts, counts, types (with every fallback), sizes. */
smoe_status shatter_plan_describe(const shatter_plan *plan, buf *out, smoe_err *err);
/* Writes both files. On any failure, also SMOE_CANCELLED, nothing new stands under their names. */
smoe_status shatter_convert(shatter_plan *plan, const shatter_events *events, smoe_err *err);

/* Reads every record and every scout tensor and checks its checksum. The first bad one ends it with
 * a message that names file, record and offset. Progress is in bytes. */
smoe_status shatter_verify(const vault *v, const scout *s, const shatter_events *events,
                           smoe_err *err);

typedef struct exported_matrix {
    dtype type;
    uint64_t rows, cols;
    uint64_t n_bytes; /* written: rows * dtype_row_bytes */
} exported_matrix;

/* Writes one matrix as standard blocks, row after row, to path (complete or not at all). name: a
 * tensor of the scout, or "blk.LAYER.exp.EXPERT.gate", ".up", ".down". SMOE_USAGE when there is no
 * such matrix, or path is a file of the model itself. */
smoe_status shatter_export(const vault *v, const scout *s, const char *name, const char *path,
                           exported_matrix *out, smoe_err *err);

/* "1.2 GB" (powers of 1000) into out; returns out. */
const char *shatter_size_text(uint64_t n_bytes, char out[32]);

#endif
