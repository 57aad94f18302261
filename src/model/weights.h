/* weights.h: the scout in memory: every dense tensor of the model, resident for the engine's life.
 *
 * Each tensor is read once, its checksum verified, into pages that the kernel cannot drop. Matrices
 * stay in their stored type; vectors (norms, biases) are widened to f32. */
#ifndef MODEL_WEIGHTS_H
#define MODEL_WEIGHTS_H

#include "base/arena.h"
#include "formats/vault.h"

typedef struct matrix {
    dtype type;
    uint64_t rows, cols;
    uint64_t row_bytes;
    const uint8_t *data; /* [rows] rows of row_bytes */
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

/* A matrix of a record (gate, up, down) that starts at `record`. */
matrix matrix_of_record(const matrix_layout *layout, const uint8_t *record);

#endif
