/* engine.c: opening a model: files, checks, budget, memory. See smoe/engine.h. */
#include "engine/engine_internal.h"

#include <stdio.h>

#include "base/cpu.h"
#include "base/mem.h"
#include "cache/io_probe.h"
#include "engine/memory.h"
#include "model/kv_cache.h"

enum { DEFAULT_CTX = 4096, PROBE_SLOTS = 32 };

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
    return io_wish_parse(p->io, &e->wish, err);
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void say_split(const smoe_engine *e, const smoe_engine_params *p)
{
    const smoe_engine_info *i = &e->info;
    enum { N = 6 };
    const uint64_t sizes[N] = {i->limit_bytes, i->scout_bytes, i->kv_bytes, i->scratch_bytes,
                               i->n_ring * i->record_bytes, i->record_bytes};
    char t[N][BUDGET_TEXT], sentence[512];
    for (int k = 0; k < N; k++) {
        budget_size_text(sizes[k], t[k]);
    }
    if (!p->log) {
        return;
    }
    snprintf(sentence, sizeof sentence,
             "memory: %s%s: scout %s, KV cache %s, scratch %s, ring %s (%u slots of %s, %.*f %% of "
             "the vault)",
             i->limit_bytes < UINT64_MAX / 2 ? t[0] : "no limit known",
             i->limit_bytes < UINT64_MAX / 2 ? " at most" : "", t[1], t[2], t[3], t[4], i->n_ring,
             t[5], i->n_ring * 10 < i->n_records, 100.0 * i->n_ring / (double)i->n_records);
    p->log(p->ctx, sentence);
}

static smoe_status split_memory(smoe_engine *e, const smoe_engine_params *p, smoe_err *err)
{
    smoe_engine_info *info = &e->info;
    info->n_records = e->vault.n_records;
    info->record_bytes = e->vault.record_bytes;
    info->scout_bytes = e->scout.st.file.size_bytes;
    budget_request request = {
        .mem_limit_bytes = p->mem_limit_bytes,
        .available_bytes = mem_available_bytes(),
        .scout_bytes = info->scout_bytes,
        .page_cache_bytes = e->io.direct ? 0 : e->io.depth * info->record_bytes,
        .record_bytes = info->record_bytes,
        .n_records = info->n_records,
        .n_ring_asked = p->n_ring,
    };
    memory_split split;
    TRY(memory_split_make(&e->scout.config, info->n_ctx, e->kv_type, info->n_threads, &request,
                          &split, err));
    info->kv_bytes = split.kv_bytes;
    info->n_ring = split.budget.n_ring;
    info->limit_bytes = split.budget.limit_bytes;
    info->scratch_bytes = split.scratch_bytes;
    info->n_batch = e->n_batch = split.n_batch;
    say_split(e, p);
    return SMOE_OK;
}

/* Which way of reading, by trial, before anything large is allocated. */
static smoe_status probe_reads(smoe_engine *e, const smoe_engine_params *p, smoe_err *err)
{
    const vault *v = &e->vault;
    const model_config *cfg = &e->scout.config;
    uint32_t n_slots = min_u32(PROBE_SLOTS, cfg->n_layer_sparse * cfg->n_expert_used);
    io_probe_result result;
    char sentence[IO_PROBE_SENTENCE_BYTES];
    uint8_t *memory = mem_pages_alloc(n_slots * v->record_bytes);
    if (!memory) {
        return err_nomem(err, "trial reads", n_slots * v->record_bytes);
    }
    const io_probe_params params = {
        .file = &v->st.file,
        .offsets = v->record_offset,
        .memory = memory,
        .n_records = v->n_layer * v->n_expert,
        .n_slots = n_slots,
        .record_bytes = (uint32_t)v->record_bytes,
        .n_workers = p->n_workers,
        .wish = e->wish,
        .max_ns = IO_PROBE_NS,
    };
    smoe_status status = io_probe(&params, &result, err);
    mem_pages_free(memory, n_slots * v->record_bytes);
    if (status == SMOE_OK) {
        e->io = result.mode;
        io_probe_sentence(&result, sentence);
        if (p->log) {
            p->log(p->ctx, sentence);
        }
    }
    return status;
}

static smoe_status open_experts(smoe_engine *e, const smoe_engine_params *p, smoe_err *err)
{
    const experts_params params = {
        .vault = &e->vault,
        .pool = e->pool,
        .n_slots = e->info.n_ring,
        .io = e->io,
        .wish = e->wish,
        .heat = e->prewarm.path ? &e->prewarm.heat : NULL,
        .progress = p->load_progress,
        .ctx = p->ctx,
    };
    return experts_open(&e->experts, &params, err);
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
    CHECK(probe_reads(e, params, err));
    CHECK(split_memory(e, params, err));
    CHECK(weights_load(&e->weights, &e->scout, err));
    file_forget(&e->scout.st.file, 0, e->scout.st.file.size_bytes);
    CHECK(pool_new(e->info.n_threads, &e->pool, err));
    if (params->prewarm && e->info.n_ring < e->info.n_records) {
        CHECK(prewarm_init(&e->prewarm, &e->vault, params->log, params->ctx, err));
    }
    CHECK(open_experts(e, params, err));
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
    experts_close(&e->experts);
    prewarm_fini(&e->prewarm);
    pool_free(e->pool);
    weights_unload(&e->weights);
    vault_close(&e->vault);
    scout_close(&e->scout);
    mem_free(e);
}

const smoe_engine_info *smoe_engine_get_info(const smoe_engine *e)
{
    return &e->info;
}
