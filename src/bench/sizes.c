/* sizes.c: see sizes.h. */
#include "bench/sizes.h"

#include "quant/quant.h"

dtype model_sizes_type(const model_sizes *s, const dense_tensor *t)
{
    return t->n_dims == 1 ? DTYPE_F32 : t->role == TENSOR_FFN_GATE_INP ? DTYPE_BF16 : s->scout;
}

static smoe_status check_type(const char *name, dtype type, uint64_t cols, const char *flag,
                              smoe_err *err)
{
    const dtype_info *info = dtype_get(type);
    if (!info || !quant_supported(type)) {
        return err_set(err, SMOE_USAGE, "--%s names a type that cannot be computed with", flag);
    }
    if (dtype_row_bytes(type, cols) == 0) {
        return err_set(err, SMOE_USAGE,
                       "--%s %s takes rows of a multiple of %u weights; %s has rows of %llu", flag,
                       info->name, info->block_elems, name, (unsigned long long)cols);
    }
    return SMOE_OK;
}

static uint64_t layout_matrix(matrix_layout *m, dtype type, uint64_t rows, uint64_t cols,
                              uint64_t at)
{
    at = (at + VAULT_MATRIX_ALIGN - 1) / VAULT_MATRIX_ALIGN * VAULT_MATRIX_ALIGN;
    *m = (matrix_layout){type, rows, cols, at};
    return at + dtype_matrix_bytes(type, rows, cols);
}

smoe_status model_sizes_of(const model_config *cfg, const char *name, dtype experts,
                           dtype scout_type, model_sizes *out, smoe_err *err)
{
    dense_tensor t;
    *out = (model_sizes){.experts = experts, .scout = scout_type,
                         .n_records = (uint64_t)cfg->n_layer_sparse * cfg->n_expert};
    TRY(check_type(name, experts, cfg->n_embd, "experts", err));
    TRY(check_type(name, experts, cfg->n_ff_exp, "experts", err));
    uint64_t at = layout_matrix(&out->gate, experts, cfg->n_ff_exp, cfg->n_embd, 0);
    at = layout_matrix(&out->up, experts, cfg->n_ff_exp, cfg->n_embd, at);
    at = layout_matrix(&out->down, experts, cfg->n_embd, cfg->n_ff_exp, at);
    out->record_bytes = (at + VAULT_ALIGN - 1) / VAULT_ALIGN * VAULT_ALIGN;
    out->vault_bytes = out->record_bytes * out->n_records;
    out->n_params = out->n_records * 3 * cfg->n_ff_exp * cfg->n_embd;
    for (size_t i = 0; model_config_dense_tensor(cfg, i, &t); i++) {
        dtype type = model_sizes_type(out, &t);
        TRY(check_type(name, type, t.cols, "scout", err));
        out->scout_bytes += dtype_matrix_bytes(type, t.rows, t.cols);
        out->n_params += t.rows * t.cols;
    }
    return SMOE_OK;
}

model_work model_sizes_work(const model_config *cfg, const model_sizes *s)
{
    model_work w = model_work_begin(cfg, &s->gate, &s->up, &s->down, s->record_bytes);
    dense_tensor t;
    for (size_t i = 0; model_config_dense_tensor(cfg, i, &t); i++) {
        dtype type = model_sizes_type(s, &t);
        model_work_add(&w, cfg, &t, type, dtype_matrix_bytes(type, t.rows, t.cols));
    }
    return w;
}
