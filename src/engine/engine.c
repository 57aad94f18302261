/* engine.c: opening a model: files, checks, budget, memory. See smoe/engine.h. */
#include "engine/engine_internal.h"

#include "base/cpu.h"
#include "base/mem.h"
#include "engine/budget.h"
#include "model/kv_cache.h"
#include "model/scratch.h"

enum { DEFAULT_CTX = 4096 };

static smoe_status open_files(smoe_engine *e, const smoe_engine_params *p, smoe_err *err)
{
    TRY(scout_open(&e->scout, p->scout_path, err));
    TRY(vault_open(&e->vault, p->vault_path, err));
    return vault_check_pair(&e->vault, &e->scout, err);
}

static smoe_status choose(smoe_engine *e, const smoe_engine_params *p, smoe_err *err)
{
    const model_config *cfg = &e->scout.config;
    smoe_engine_info *info = &e->info;
    e->kernels = kernels_get(p->isa);
    if (!e->kernels) {
        return err_set(err, SMOE_USAGE,
                       "this processor has no kernel set \"%s\"; known are scalar, "
                       "avx2, avx2_vnni, avx512, neon and neon_dot",
                       p->isa);
    }
    /* The sets differ a little: "avx512" of the panels needs VNNI. Any gives the same bits. */
    e->panel_kernels = panel_kernels_get(p->isa);
    if (!e->panel_kernels) {
        e->panel_kernels = panel_kernels_get("avx2");
    }
    info->n_ctx = p->n_ctx;
    if (info->n_ctx == 0) {
        info->n_ctx = cfg->n_ctx_train < DEFAULT_CTX ? cfg->n_ctx_train : DEFAULT_CTX;
    }
    if (info->n_ctx > cfg->n_ctx_train) {
        return err_set(err, SMOE_RANGE, "--ctx %u is more than this model can: its checkpoint says "
                       "max_position_embeddings = %u", info->n_ctx, cfg->n_ctx_train);
    }
    info->n_threads = p->n_threads ? p->n_threads : cpu_n_cores();
    e->kv_type = p->kv_type == SMOE_KV_F32    ? DTYPE_F32
                 : p->kv_type == SMOE_KV_Q8_0 ? DTYPE_Q8_0
                                              : DTYPE_F16;
    TRY(kv_cache_check(cfg, e->kv_type, err));
    e->n_batch = info->n_ctx < ENGINE_BATCH ? info->n_ctx : ENGINE_BATCH;
    return SMOE_OK;
}

static smoe_status split_memory(smoe_engine *e, const smoe_engine_params *p, smoe_err *err)
{
    const model_config *cfg = &e->scout.config;
    smoe_engine_info *info = &e->info;
    info->scout_bytes = e->scout.st.file.size_bytes;
    info->kv_bytes = kv_cache_bytes(cfg, e->kv_type, info->n_ctx);
    budget_request request = {
        .mem_limit_bytes = p->mem_limit_bytes,
        .available_bytes = mem_available_bytes(),
        .scout_bytes = info->scout_bytes,
        .kv_bytes = info->kv_bytes,
        .scratch_bytes = scratch_bytes(cfg, e->n_batch, info->n_ctx, info->n_threads),
        .record_bytes = e->vault.record_bytes,
        .n_records = e->vault.n_records,
        .n_ring_min = cfg->n_layer_sparse * cfg->n_expert_used,
        .n_ring_asked = p->n_ring,
    };
    budget split;
    TRY(budget_split(&request, &split, err));
    info->n_ring = split.n_ring;
    return SMOE_OK;
}

static void fill_info(smoe_engine *e)
{
    const model_config *cfg = &e->scout.config;
    smoe_engine_info *info = &e->info;
    info->architecture = cfg->arch;
    info->lineage = e->scout.lineage;
    info->isa = e->panel_kernels->name;
    info->n_layer = cfg->n_layer;
    info->n_vocab = cfg->n_vocab;
    info->n_ctx_train = cfg->n_ctx_train;
    info->n_expert = cfg->n_expert;
    info->n_expert_used = cfg->n_expert_used;
    info->n_records = e->vault.n_records;
    info->record_bytes = e->vault.record_bytes;
    info->eos_ids = e->scout.eos_ids;
    info->n_eos_ids = e->scout.n_eos_ids;
}

smoe_status smoe_engine_open(const smoe_engine_params *params, smoe_engine **out, smoe_err *err)
{
    smoe_status status;
    smoe_engine *e = mem_calloc(1, sizeof *e);
    if (!e) {
        return err_nomem(err, "the engine", sizeof *e);
    }
    e->scout.st.file = e->vault.st.file = FILE_CLOSED;
    CHECK(open_files(e, params, err));
    CHECK(choose(e, params, err));
    CHECK(split_memory(e, params, err));
    CHECK(weights_load(&e->weights, &e->scout, err));
    CHECK(expert_cache_init(&e->cache, &e->vault, e->info.n_ring, err));
    CHECK(pool_new(e->info.n_threads, &e->pool, err));
    fill_info(e);
    *out = e;
    return SMOE_OK;
out:
    smoe_engine_close(e);
    return status;
}

void smoe_engine_close(smoe_engine *e)
{
    if (!e) {
        return;
    }
    pool_free(e->pool);
    expert_cache_fini(&e->cache);
    weights_unload(&e->weights);
    vault_close(&e->vault);
    scout_close(&e->scout);
    mem_free(e);
}

const smoe_engine_info *smoe_engine_get_info(const smoe_engine *e)
{
    return &e->info;
}
