/* weights.c: see weights.h. */
#include "model/weights.h"

#include "base/mem.h"
#include "quant/panel.h"
#include "quant/quant.h"

static matrix make_matrix(dtype type, uint64_t rows, uint64_t cols, const uint8_t *data)
{
    return (matrix){type, rows, cols, dtype_row_bytes(type, cols), dtype_get(type)->is_quantized,
                    data};
}

/* Reads the tensor of a role to its own place in the blob and verifies its checksum. Its shape is
 * the configuration's: scout_open has checked that. */
static smoe_status load(weights *w, const scout *s, enum tensor_role role, int32_t layer,
                        scout_tensor *out, const uint8_t **data, smoe_err *err)
{
    dense_tensor want;
    if (!model_config_find_tensor(&w->config, role, layer, &want)) {
        return err_set(err, SMOE_INTERNAL, "layer %d has no tensor of role %d", layer, (int)role);
    }
    TRY(scout_find(s, slice_from(want.name), out, err));
    uint8_t *place = w->blob + (out->offset - s->st.data_offset);
    *data = place;
    return scout_read_tensor(s, slice_from(want.name), place, err);
}

static smoe_status get_matrix(weights *w, const scout *s, enum tensor_role role, int32_t layer,
                              matrix *out, smoe_err *err)
{
    scout_tensor t;
    const uint8_t *data;
    TRY(load(w, s, role, layer, &t, &data, err));
    *out = make_matrix(t.type, t.rows, t.cols, data);
    return SMOE_OK;
}

static smoe_status get_vector(weights *w, const scout *s, enum tensor_role role, int32_t layer,
                              const float **out, smoe_err *err)
{
    scout_tensor t;
    const uint8_t *data;
    TRY(load(w, s, role, layer, &t, &data, err));
    float *v = arena_array(&w->arena, t.rows * t.cols, sizeof *v);
    if (!v) {
        return err_nomem(err, "a norm", t.rows * t.cols * sizeof *v);
    }
    dequantize_row_ref(t.type, data, v, (int64_t)(t.rows * t.cols));
    *out = v;
    return SMOE_OK;
}

static smoe_status load_layer(weights *w, const scout *s, int32_t i, smoe_err *err)
{
    layer_weights *l = &w->layers[i];
    TRY(get_vector(w, s, TENSOR_ATTN_NORM, i, &l->attn_norm, err));
    TRY(get_matrix(w, s, TENSOR_ATTN_Q, i, &l->attn_q, err));
    TRY(get_matrix(w, s, TENSOR_ATTN_K, i, &l->attn_k, err));
    TRY(get_matrix(w, s, TENSOR_ATTN_V, i, &l->attn_v, err));
    TRY(get_matrix(w, s, TENSOR_ATTN_OUTPUT, i, &l->attn_output, err));
    if (w->config.attention_bias) {
        TRY(get_vector(w, s, TENSOR_ATTN_Q_BIAS, i, &l->attn_q_bias, err));
        TRY(get_vector(w, s, TENSOR_ATTN_K_BIAS, i, &l->attn_k_bias, err));
        TRY(get_vector(w, s, TENSOR_ATTN_V_BIAS, i, &l->attn_v_bias, err));
        TRY(get_vector(w, s, TENSOR_ATTN_OUTPUT_BIAS, i, &l->attn_output_bias, err));
    }
    TRY(get_vector(w, s, TENSOR_ATTN_Q_NORM, i, &l->attn_q_norm, err));
    TRY(get_vector(w, s, TENSOR_ATTN_K_NORM, i, &l->attn_k_norm, err));
    TRY(get_vector(w, s, TENSOR_FFN_NORM, i, &l->ffn_norm, err));
    if (w->config.is_sparse[i]) {
        return get_matrix(w, s, TENSOR_FFN_GATE_INP, i, &l->ffn_gate_inp, err);
    }
    TRY(get_matrix(w, s, TENSOR_FFN_GATE, i, &l->ffn_gate, err));
    TRY(get_matrix(w, s, TENSOR_FFN_UP, i, &l->ffn_up, err));
    return get_matrix(w, s, TENSOR_FFN_DOWN, i, &l->ffn_down, err);
}

smoe_status weights_load(weights *w, const scout *s, smoe_err *err)
{
    smoe_status status;
    *w = (weights){.config = s->config};
    arena_init(&w->arena);
    w->blob_bytes = s->st.file.size_bytes - s->st.data_offset;
    w->blob = mem_pages_alloc(w->blob_bytes);
    if (!w->blob) {
        CHECK(err_nomem(err, "the scout", w->blob_bytes));
    }
    w->layers = arena_array(&w->arena, w->config.n_layer, sizeof *w->layers);
    if (!w->layers) {
        CHECK(err_nomem(err, "the layer table", w->config.n_layer * sizeof *w->layers));
    }
    CHECK(get_matrix(w, s, TENSOR_TOKEN_EMBD, -1, &w->token_embd, err));
    w->output = w->token_embd;
    if (!w->config.tie_word_embeddings) {
        CHECK(get_matrix(w, s, TENSOR_OUTPUT, -1, &w->output, err));
    }
    CHECK(get_vector(w, s, TENSOR_OUTPUT_NORM, -1, &w->output_norm, err));
    for (uint32_t i = 0; i < w->config.n_layer; i++) {
        CHECK(load_layer(w, s, (int32_t)i, err));
    }
    return SMOE_OK;
out:
    weights_unload(w);
    return status;
}

void weights_unload(weights *w)
{
    mem_pages_free(w->blob, w->blob_bytes);
    arena_fini(&w->arena);
    *w = (weights){0};
}

matrix matrix_of_record(const matrix_layout *layout, const uint8_t *record)
{
    return make_matrix(layout->type, layout->rows, layout->cols, record + layout->offset);
}

void matrix_row(const matrix *m, const kernels *k, uint64_t r, uint8_t *blocks, float *out)
{
    const uint8_t *row = m->data + r * m->row_bytes;
    if (m->in_panels) {
        uint64_t lane = r % PANEL_ROWS;
        panel_unpack(m->type, row - lane * m->row_bytes, lane + 1, m->cols, blocks);
        row = blocks + lane * m->row_bytes;
    }
    k->dequantize_row(m->type, row, out, (int64_t)m->cols);
}
