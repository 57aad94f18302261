/* describe.c: a plan as a table for people. */
#include "shatter/plan.h"

#include <stdio.h>

typedef struct part_row {
    const char *label;
    dtype want, type;
    uint64_t n_tensors, n_bytes, cols;
} part_row;

enum { MAX_ROWS = 32 };

typedef struct table {
    part_row rows[MAX_ROWS];
    size_t n_rows;
} table;

const char *shatter_size_text(uint64_t n_bytes, char out[32])
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double v = (double)n_bytes;
    int unit = 0;
    while (v >= 999.5 && unit < 6) {
        v /= 1000;
        unit++;
    }
    snprintf(out, 32, unit == 0 || v >= 99.95 ? "%.0f %s" : "%.1f %s", v, units[unit]);
    return out;
}

static const char *label_of(enum tensor_role role)
{
    switch (role) {
    case TENSOR_TOKEN_EMBD:
        return "embedding";
    case TENSOR_OUTPUT:
        return "output head";
    case TENSOR_ATTN_Q:
    case TENSOR_ATTN_K:
    case TENSOR_ATTN_V:
    case TENSOR_ATTN_OUTPUT:
        return "attention";
    case TENSOR_FFN_GATE:
    case TENSOR_FFN_UP:
    case TENSOR_FFN_DOWN:
        return "dense layers";
    case TENSOR_FFN_GATE_INP:
        return "routers";
    default:
        return "norms and biases";
    }
}

/* One row per part and type; a part whose rows do not all fit the wanted block gets two. */
static void add(table *t, const char *label, dtype want, dtype type, uint64_t n_tensors,
                uint64_t n_bytes, uint64_t cols)
{
    size_t i = 0;
    while (i < t->n_rows && !(strcmp(t->rows[i].label, label) == 0 && t->rows[i].type == type)) {
        i++;
    }
    if (i == t->n_rows) {
        if (i == MAX_ROWS) {
            return;
        }
        t->rows[t->n_rows++] = (part_row){.label = label, .want = want, .type = type, .cols = cols};
    }
    t->rows[i].n_tensors += n_tensors;
    t->rows[i].n_bytes += n_bytes;
}

static void fill(const shatter_plan *p, table *t)
{
    for (size_t i = 0; i < p->n_dense; i++) {
        const dense_plan *d = &p->dense[i];
        bool is_small = strcmp(label_of(d->tensor.role), "routers") == 0 ||
                        strcmp(label_of(d->tensor.role), "norms and biases") == 0;
        add(t, label_of(d->tensor.role), is_small ? d->type : p->want_scout, d->type, 1, d->n_bytes,
            d->tensor.cols);
    }
    uint64_t n_records = shatter_plan_summary(p).n_records;
    for (int part = 0; part < N_PARTS; part++) {
        const matrix_layout *m = &p->layout[part];
        add(t, part == PART_DOWN ? "experts: down" : "experts: gate, up", p->want_experts, m->type,
            n_records, n_records * dtype_matrix_bytes(m->type, m->rows, m->cols), m->cols);
    }
}

smoe_status shatter_plan_describe(const shatter_plan *p, buf *out, smoe_err *err)
{
    table t = {.n_rows = 0};
    const model_config *c = &p->config;
    shatter_summary s = shatter_plan_summary(p);
    char a[32], b[32], d[32];
    fill(p, &t);
    TRY(buf_printf(out, err, "%s: %s, %u layers (%u sparse), %u experts, %u per token\n\n",
                   p->source.dir, c->arch, c->n_layer, c->n_layer_sparse, c->n_expert,
                   c->n_expert_used));
    TRY(buf_printf(out, err, "  %-18s %8s  %-5s %10s\n", "part", "tensors", "type", "size"));
    for (size_t i = 0; i < t.n_rows; i++) {
        const part_row *r = &t.rows[i];
        TRY(buf_printf(out, err, "  %-18s %8llu  %-5s %10s", r->label,
                       (unsigned long long)r->n_tensors, dtype_get(r->type)->name,
                       shatter_size_text(r->n_bytes, a)));
        if (r->type != r->want) {
            TRY(buf_printf(out, err,
                           "   rows of %llu do not fit the blocks of %s: the next finer type",
                           (unsigned long long)r->cols, dtype_get(r->want)->name));
        }
        TRY(buf_putc(out, '\n', err));
    }
    return buf_printf(out, err,
                      "\n  reads  %10s   from %zu file%s\n"
                      "  writes %10s   %s  (stays in memory)\n"
                      "         %10s   %s  (%zu records of %llu bytes, read on demand)\n",
                      shatter_size_text(s.source_bytes, a), p->source.n_shards,
                      p->source.n_shards == 1 ? "" : "s", shatter_size_text(s.scout_bytes, b),
                      s.scout_path, shatter_size_text(s.vault_bytes, d), s.vault_path, s.n_records,
                      (unsigned long long)s.record_bytes);
}
