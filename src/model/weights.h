/* weights.h: the scout in memory: every dense tensor of the model, resident for the engine's life.
 *
 * Each tensor is read once, its checksum verified, into pages that the kernel cannot drop. Matrices
 * stay in their stored type; vectors (norms, biases) are widened to f32. */
#ifndef MODEL_WEIGHTS_H
#define MODEL_WEIGHTS_H

#include "base/arena.h"
#include "formats/vault.h"
#include "quant/kernels.h"

typedef struct matrix {
    dtype type;
    uint64_t rows, cols;
    uint64_t row_bytes;  /* of one row; 16 rows of a panel are 16 times that */
    bool in_panels;      /* quantised types: panels of 16 rows (quant/panel.h); else row by row */
    const uint8_t *data;
} matrix;

typedef struct layer_weights {
    const float *attn_norm;             /* [n_embd] */
    matrix attn_q, attn_k, attn_v;      /* [n_head*n_embd_head, n_embd], k and v with n_head_kv */
    matrix attn_output;                 /* [n_embd, n_head*n_embd_head] */
    const float *attn_q_bias, *attn_k_bias, *attn_v_bias, *attn_output_bias; /* NULL = none */
    const float *attn_q_norm, *attn_k_norm; /* [n_embd_head] */
    const float *ffn_norm;              /* [n_embd] */
    matrix ffn_gate_inp;                /* router [n_expert, n_embd]; rows = 0 in a dense layer */
    matrix ffn_gate, ffn_up, ffn_down;  /* dense layers only */
} layer_weights;

typedef struct weights {
    model_config config;
    matrix token_embd;      /* [n_vocab, n_embd] */
    matrix output;          /* [n_vocab, n_embd]; the same as token_embd when tied */
    const float *output_norm;
    layer_weights *layers;  /* [n_layer] */
    /* mem_pages, laid out as the file; what no tensor needs stays untouched */
    uint8_t *blob;
    uint64_t blob_bytes;
    arena arena;            /* the widened vectors and the layer table */
} weights;

smoe_status weights_load(weights *w, const scout *s, smoe_err *err);
void weights_unload(weights *w);

/* Row r as floats [cols]; blocks [16 * row_bytes] is scratch. */
void matrix_row(const matrix *m, const kernels *k, uint64_t r, uint8_t *blocks, float *out);

/* A matrix of a record (gate, up, down) that starts at `record`. */
matrix matrix_of_record(const matrix_layout *layout, const uint8_t *record);

#endif
