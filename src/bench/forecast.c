/* forecast.c: see forecast.h. */
#include "bench/forecast.h"

#include <string.h>

#include "bench/policy_sim.h"
#include "bench/routing.h"

enum { N_TOKENS = 400, SEED = 1 };

static smoe_status make_trace(const model_work *w, uint32_t n_tokens, trace *t, smoe_err *err)
{
    const trace_shape shape = {w->n_layer_sparse, w->n_expert, w->n_expert_used};
    routing *r;
    trace_init(t, &shape, NULL);
    TRY(routing_new(&shape, &ROUTING_STICKY, SEED, &r, err));
    smoe_status status = routing_trace(r, n_tokens, t, err);
    routing_free(r);
    return status;
}

/* Of all lookups in the warm half; 1 when every record has a slot. */
static smoe_status expect_hits(const model_work *w, uint32_t n_ring, double *hit_rate,
                               smoe_err *err)
{
    trace t;
    policy_result result;
    *hit_rate = 1;
    if (n_ring >= model_work_records(w)) {
        return SMOE_OK;
    }
    smoe_status status = make_trace(w, N_TOKENS, &t, err);
    if (status == SMOE_OK) {
        status = policy_simulate(&t, POLICY_LRU, n_ring, 1, &result, err);
    }
    trace_fini(&t);
    if (status == SMOE_OK) {
        *hit_rate = (double)result.n_hits_warm / (double)result.n_asked_warm;
    }
    return status;
}

/* Records that a prompt wants, each counted once in each of its passes. */
static smoe_status expect_union(const model_work *w, uint32_t n_prompt, uint32_t n_batch,
                                double *n_records, smoe_err *err)
{
    trace t, passes;
    policy_result result;
    uint32_t n_pass = n_prompt < n_batch ? n_prompt : n_batch;
    smoe_status status = make_trace(w, n_pass, &t, err);
    trace_init(&passes, &t.shape, NULL);
    if (status == SMOE_OK) {
        status = trace_add_pass(&passes, n_pass, err);
    }
    for (uint32_t i = 0; status == SMOE_OK && i < n_pass; i++) {
        memcpy(trace_at(&passes, i, 0), trace_at(&t, i, 0),
               (size_t)t.shape.n_layer * t.shape.n_used * sizeof(uint16_t));
    }
    if (status == SMOE_OK) {
        status = policy_simulate(&passes, POLICY_LRU, model_work_records(w), 1, &result, err);
    }
    trace_fini(&t);
    trace_fini(&passes);
    if (status == SMOE_OK) {
        *n_records = (double)result.n_asked * ((double)n_prompt / n_pass);
    }
    return status;
}

static void expect_decode(const forecast_question *q, const machine *m, forecast *f)
{
    const model_work *w = q->work;
    double dram = m->dram_bytes_s * FORECAST_OF_DRAM, drive = m->drive_bytes_s * FORECAST_OF_DRIVE;
    double kv_bytes = 2.0 * (double)w->kv_elems * q->n_depth; /* f16 */
    double dense = ((double)(w->layers_bytes + w->head_bytes) + kv_bytes) / dram;
    double experts = (double)w->n_experts_per_token * (double)w->expert_bytes / dram;
    f->read_bytes_per_token =
        (1 - f->hit_rate) * w->n_experts_per_token * (double)w->record_bytes;
    f->decode_bound = "memory";
    if (f->hit_rate == 1) {
        f->decode_tok_s = 1 / (dense + experts);
    } else if (drive > 0) {
        double reads = f->read_bytes_per_token / drive;
        f->decode_bound = reads > dense + experts ? "disk" : "memory";
        f->decode_tok_s = 1 / (dense + (reads > experts ? reads : experts));
    }
}

static void expect_prompt(const forecast_question *q, const machine *m, double n_union,
                          forecast *f)
{
    const model_work *w = q->work;
    double drive = m->drive_bytes_s * FORECAST_OF_DRIVE;
    double n_ops = 2.0 * ((double)q->n_prompt * (double)model_work_token_weights(w) +
                          (double)w->head_weights);
    double compute = n_ops / (m->ops_s * FORECAST_OF_PEAK);
    f->prompt_bound = "compute";
    if (f->hit_rate == 1) {
        f->ttft_seconds = compute;
        f->load_seconds =
            drive > 0 ? (double)model_work_records(w) * (double)w->record_bytes / drive : 0;
    } else if (drive > 0) {
        double reads = n_union * (double)w->record_bytes / drive;
        f->prompt_bound = reads > compute ? "disk" : "compute";
        f->ttft_seconds = reads > compute ? reads : compute;
    }
}

/* Memory for the shortest pass and the smallest ring: what is left when nothing fits. */
static uint64_t least_memory(const forecast_question *q, const machine *m, budget_request r)
{
    memory_split split;
    smoe_err why;
    r.mem_limit_bytes = 1;
    memory_split_make(q->config, q->n_ctx, DTYPE_F16, m->n_threads, &r, &split, &why);
    uint64_t n_least = r.n_ring_min < r.n_records ? r.n_ring_min : r.n_records;
    return split.budget.fixed_bytes + n_least * r.record_bytes;
}

smoe_status forecast_check_ctx(const model_config *cfg, uint32_t n_ctx, smoe_err *err)
{
    if (n_ctx <= cfg->n_ctx_train) {
        return SMOE_OK;
    }
    return err_set(err, SMOE_RANGE, "--ctx %u is more than this model can: its config says "
                   "max_position_embeddings = %u", n_ctx, cfg->n_ctx_train);
}

smoe_status forecast_make(const forecast_question *q, const machine *m, forecast *out,
                          smoe_err *err)
{
    const model_work *w = q->work;
    double n_union = 0;
    smoe_err why;
    budget_request r = {.mem_limit_bytes = q->mem_limit_bytes,
                        .available_bytes = m->available_bytes,
                        .scout_bytes = q->scout_bytes,
                        .record_bytes = w->record_bytes,
                        .n_records = model_work_records(w)};
    *out = (forecast){.decode_bound = "memory", .prompt_bound = "compute"};
    TRY(forecast_check_ctx(q->config, q->n_ctx, err));
    out->fits = memory_split_make(q->config, q->n_ctx, DTYPE_F16, m->n_threads, &r, &out->memory,
                                  &why) == SMOE_OK;
    out->needed_bytes = least_memory(q, m, r);
    if (!out->fits) {
        return SMOE_OK;
    }
    TRY(expect_hits(w, out->memory.budget.n_ring, &out->hit_rate, err));
    if (out->hit_rate < 1) {
        TRY(expect_union(w, q->n_prompt, out->memory.n_batch, &n_union, err));
    }
    expect_decode(q, m, out);
    expect_prompt(q, m, n_union, out);
    return SMOE_OK;
}
