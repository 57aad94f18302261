/* expert_resident.c: see expert_resident.h. Records lie in memory one after another in the order of
 * the file, so a piece covers any number of them; one is verified when its last byte has come. */
#include "cache/expert_resident.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cache/aio_backend.h"
#include "cache/record_read.h"

static const uint64_t PIECE_BYTES = 4 << 20;

enum { VERIFY_BATCH = 64 }; /* records for the threads at a time */

/* ---- the interface ---- */

static smoe_status resident_demand(expert_source *source, uint32_t layer, const uint32_t *experts,
                                   uint32_t n, smoe_err *err)
{
    expert_resident *r = (expert_resident *)source;
    (void)err;
    memcpy(r->demand, experts, n * sizeof *experts);
    r->demand_layer = layer;
    r->n_demand = n;
    r->n_given = 0;
    r->stats.n_acquires += n;
    r->stats.n_hits += n;
    return SMOE_OK;
}

static smoe_status resident_next(expert_source *source, bool wait, uint32_t *i,
                                 const uint8_t **record, smoe_err *err)
{
    expert_resident *r = (expert_resident *)source;
    (void)wait, (void)err;
    if (r->n_given == r->n_demand) {
        *i = EXPERT_NONE;
        return SMOE_OK;
    }
    *i = r->n_given++;
    *record = r->memory + r->offset[r->demand_layer * r->n_expert + r->demand[*i]];
    return SMOE_OK;
}

static void resident_release(expert_source *source, uint32_t layer, uint32_t expert)
{
    (void)source, (void)layer, (void)expert;
}

static void resident_abandon(expert_source *source)
{
    expert_resident *r = (expert_resident *)source;
    r->n_demand = r->n_given = 0;
}

/* ---- loading ---- */

typedef struct loader {
    expert_resident *r;
    const expert_resident_params *p;
    aio *aio;
    uint32_t *ids;       /* [n_records] layer * n_expert + expert, in the order of the file */
    uint64_t *n_missing; /* [n_records] bytes that have not come yet */
    uint64_t n_records;
    uint64_t next, next_at; /* where the next piece starts: record, byte of it */
    uint64_t n_done;        /* bytes */
    aio_read pieces[EXPERT_RESIDENT_DEPTH]; /* by tag; len 0 = free */
    uint32_t complete[VERIFY_BATCH];        /* records to be verified */
    uint32_t n_complete;
    bool is_bad[VERIFY_BATCH];
} loader;

/* The next piece of the file: up to PIECE_BYTES of records that lie side by side. */
static bool take_piece(loader *l, aio_read *piece)
{
    const vault *v = l->p->vault;
    uint64_t n_bytes = 0;
    if (l->next == l->n_records) {
        return false;
    }
    piece->offset = v->record_offset[l->ids[l->next]] + l->next_at;
    piece->data = l->r->memory + l->next * v->record_bytes + l->next_at;
    while (l->next < l->n_records && n_bytes < PIECE_BYTES) {
        uint64_t n = v->record_bytes - l->next_at;
        if (l->next_at == 0 && v->record_offset[l->ids[l->next]] != piece->offset + n_bytes) {
            break; /* a gap in the file */
        }
        n = n < PIECE_BYTES - n_bytes ? n : PIECE_BYTES - n_bytes;
        n_bytes += n;
        l->next_at = (l->next_at + n) % v->record_bytes;
        l->next += l->next_at == 0;
    }
    piece->len = (uint32_t)n_bytes;
    return true;
}

static void start_pieces(loader *l)
{
    aio_read batch[EXPERT_RESIDENT_DEPTH];
    uint32_t n = 0;
    for (uint32_t tag = 0; tag < EXPERT_RESIDENT_DEPTH; tag++) {
        if (l->pieces[tag].len == 0 && take_piece(l, &l->pieces[tag])) {
            l->pieces[tag].tag = tag;
            batch[n++] = l->pieces[tag];
        }
    }
    if (n > 0) {
        aio_submit(l->aio, batch, n);
    }
}

static void verify_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    loader *l = ctx;
    const vault *v = l->p->vault;
    (void)thread;
    for (size_t i = begin; i < end; i++) {
        uint32_t id = l->ids[l->complete[i]];
        const uint8_t *data = l->r->memory + l->complete[i] * v->record_bytes;
        l->is_bad[i] = vault_check_record(v, id / v->n_expert, id % v->n_expert, data, NULL) !=
                       SMOE_OK;
    }
}

static smoe_status verify(loader *l, smoe_err *err)
{
    const vault *v = l->p->vault;
    pool_for(l->p->pool, l->n_complete, 1, verify_range, l);
    for (uint32_t i = 0; i < l->n_complete; i++) {
        if (l->is_bad[i]) { /* again, for the sentence */
            uint32_t id = l->ids[l->complete[i]];
            return vault_check_record(v, id / v->n_expert, id % v->n_expert,
                                      l->r->memory + l->complete[i] * v->record_bytes, err);
        }
    }
    l->n_complete = 0;
    return SMOE_OK;
}

static smoe_status finish_piece(loader *l, const aio_done *done, smoe_err *err)
{
    const vault *v = l->p->vault;
    aio_read *piece = &l->pieces[done->tag];
    uint64_t at = (uint64_t)(piece->data - l->r->memory), end = at + piece->len;
    TRY(record_reads_status(v, l->ids[at / v->record_bytes], l->ids[(end - 1) / v->record_bytes],
                            done->error, err));
    l->n_done += piece->len;
    if (!l->p->direct) {
        file_forget(&v->st.file, piece->offset, piece->len);
    }
    piece->len = 0;
    while (at < end) {
        uint64_t record = at / v->record_bytes, n = (record + 1) * v->record_bytes - at;
        n = n < end - at ? n : end - at;
        l->n_missing[record] -= n;
        if (l->n_missing[record] == 0) {
            l->complete[l->n_complete++] = (uint32_t)record;
        }
        if (l->n_complete == VERIFY_BATCH) {
            TRY(verify(l, err));
        }
        at += n;
    }
    return SMOE_OK;
}

static smoe_status load(loader *l, smoe_err *err)
{
    aio_done done[EXPERT_RESIDENT_DEPTH];
    uint64_t start_ns = clock_ns();
    start_pieces(l);
    for (uint32_t n; (n = aio_reap(l->aio, done, EXPERT_RESIDENT_DEPTH, true)) > 0;) {
        for (uint32_t i = 0; i < n; i++) {
            TRY(finish_piece(l, &done[i], err));
        }
        start_pieces(l);
        if (l->p->progress &&
            !l->p->progress(l->p->progress_ctx, l->n_done, l->r->memory_bytes)) {
            return err_set(err, SMOE_CANCELLED, "loading the experts was cancelled");
        }
    }
    l->r->stats.bytes_read = l->n_done;
    l->r->stats.read_ns = clock_ns() - start_ns;
    return verify(l, err);
}

static smoe_status open_loader(loader *l, aio_backend **backend, smoe_err *err)
{
    const vault *v = l->p->vault;
    expert_resident *r = l->r;
    l->ids = mem_calloc(v->n_records, sizeof *l->ids);
    l->n_missing = mem_calloc(v->n_records, sizeof *l->n_missing);
    if (!l->ids || !l->n_missing) {
        return err_nomem(err, "loading the experts", v->n_records * 12);
    }
    for (uint32_t id = 0; id < v->n_layer * v->n_expert; id++) {
        if (v->record_offset[id]) {
            r->offset[id] = l->n_records * v->record_bytes;
            l->n_missing[l->n_records] = v->record_bytes;
            l->ids[l->n_records++] = id;
        }
    }
    const aio_params params = {.file = &v->st.file, .kind = l->p->kind, .direct = l->p->direct,
                               .depth = EXPERT_RESIDENT_DEPTH, .max_queued = EXPERT_RESIDENT_DEPTH,
                               .backend = *backend};
    *backend = NULL;
    return aio_open(&params, &l->aio, err);
}

static smoe_status allocate(expert_resident *r, const vault *v, smoe_err *err)
{
    size_t n_ids = (size_t)v->n_layer * v->n_expert;
    r->offset = mem_calloc(n_ids, sizeof *r->offset);
    r->demand = mem_calloc(v->n_expert, sizeof *r->demand);
    r->memory = v->n_records <= SIZE_MAX / v->record_bytes
                    ? mem_pages_alloc(v->n_records * v->record_bytes)
                    : NULL;
    r->memory_bytes = r->memory ? v->n_records * v->record_bytes : 0;
    return r->offset && r->demand && r->memory
               ? SMOE_OK
               : err_nomem(err, "the experts (a smaller --ring needs less)",
                           v->n_records * v->record_bytes);
}

smoe_status expert_resident_init(expert_resident *r, const expert_resident_params *p, smoe_err *err)
{
    smoe_status status;
    const vault *v = p->vault;
    loader l = {.r = r, .p = p};
    aio_backend *backend = p->backend;
    *r = (expert_resident){.source = {resident_demand, resident_next, resident_release,
                                      resident_abandon, NULL, NULL, v->n_expert},
                           .n_expert = v->n_expert, .record_bytes = v->record_bytes};
    CHECK(allocate(r, v, err));
    CHECK(open_loader(&l, &backend, err));
    CHECK(load(&l, err));
out:
    if (backend) {
        backend->close(backend);
    }
    aio_close(l.aio); /* before the memory that reads in flight write into */
    mem_free(l.ids);
    mem_free(l.n_missing);
    if (status != SMOE_OK) {
        expert_resident_fini(r);
    }
    return status;
}

void expert_resident_fini(expert_resident *r)
{
    mem_pages_free(r->memory, r->memory_bytes);
    mem_free(r->offset);
    mem_free(r->demand);
    *r = (expert_resident){0};
}
