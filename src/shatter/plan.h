/* plan.h: what a plan knows; private to shatter/. */
#ifndef SHATTER_PLAN_H
#define SHATTER_PLAN_H

#include "shatter/shatter.h"
#include "shatter/source.h"
#include "smoe/tokenizer.h"

/* One matrix (or vector, rows = 1) of the checkpoint. Element (r, c) is
 *   plain        elements[r * cols + c]              from offset on
 *   transposed   slab[c * stride + first_col + r]    where the slab starts at offset */
typedef struct matrix_source {
    char name[96];
    size_t shard;
    dtype type;
    uint64_t offset, rows, cols;
    bool transposed;
    uint64_t stride, first_col;
} matrix_source;

typedef struct dense_plan {
    dense_tensor tensor;
    matrix_source source;
    dtype type; /* in the scout */
    uint64_t n_bytes;
} dense_plan;

/* How a sparse layer's experts lie in the checkpoint. */
enum expert_form {
    EXPERTS_SINGLE, /* experts.E.gate_proj.weight, up_proj, down_proj */
    /* experts.gate_up_proj [n_expert, 2*n_ff, n_embd], down_proj [n_expert, n_embd, n_ff] */
    EXPERTS_FUSED,
    /* experts.gate_up_proj [n_expert, n_embd, 2*n_ff], down_proj [n_expert, n_ff, n_embd] */
    EXPERTS_FUSED_TRANSPOSED,
};

enum expert_part { PART_GATE, PART_UP, PART_DOWN, N_PARTS };

/* One of the checkpoint's text files, kept byte for byte. */
typedef struct text_file {
    const char *name;
    bool required, present;
    buf text;
} text_file;

enum {
    FILE_CONFIG,
    FILE_TOKENIZER,
    FILE_TOKENIZER_CONFIG,
    FILE_GENERATION,
    FILE_TEMPLATE,
    FILE_COMPILED, /* not of the checkpoint: tokenizer.json in the form that loads fast */
    N_FILES
};

struct shatter_plan {
    source source;
    model_config config;
    text_file files[N_FILES];
    smoe_ids eos_ids, penalty_exempt_ids;
    dense_plan *dense;
    size_t n_dense;
    enum expert_form *form; /* [n_layer] */
    matrix_layout layout[N_PARTS];
    uint64_t record_bytes;
    dtype want_experts, want_scout;
    uint32_t n_threads;
    uint64_t source_bytes, scout_bytes;
    char *out_dir, *stem_path, *vault_path, *scout_path;
};

/* plan.c */
smoe_status plan_expert_source(shatter_plan *p, uint32_t layer, uint32_t expert,
                               enum expert_part part, matrix_source *out, smoe_err *err);
uint64_t matrix_source_bytes(const matrix_source *m); /* that converting it reads */
void plan_note(const shatter_events *events, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* tokens.c: fills eos_ids and penalty_exempt_ids; notes what looks untrained. */
smoe_status plan_tokens(shatter_plan *p, const shatter_events *events, smoe_err *err);

#endif
