/* verify.c: reads a whole model and checks every checksum. */
#include "base/mem.h"
#include "shatter/shatter.h"

static smoe_status report(const shatter_events *e, uint64_t done, uint64_t total, smoe_err *err)
{
    if (e != NULL && e->progress != NULL) {
        e->progress(e->ctx, done, total);
    }
    if (e != NULL && e->cancelled != NULL && e->cancelled(e->ctx)) {
        return err_set(err, SMOE_CANCELLED, "interrupted after %llu of %llu bytes",
                       (unsigned long long)done, (unsigned long long)total);
    }
    return SMOE_OK;
}

smoe_status shatter_verify(const vault *v, const scout *s, const shatter_events *events,
                           smoe_err *err)
{
    smoe_status status = SMOE_OK;
    uint64_t done = 0, total = v->n_records * v->record_bytes;
    void *record = mem_alloc((size_t)v->record_bytes);
    if (record == NULL) {
        return err_nomem(err, "a record", v->record_bytes);
    }
    for (size_t i = 0; i < s->st.n_tensors; i++) {
        total += s->st.tensors[i].n_bytes;
    }
    CHECK(report(events, 0, total, err));
    for (size_t i = 0; i < s->st.n_tensors; i++) {
        CHECK(scout_check_tensor(s, i, err));
        done += s->st.tensors[i].n_bytes;
        CHECK(report(events, done, total, err));
    }
    for (size_t at = 0; at < (size_t)v->n_layer * v->n_expert; at++) {
        if (v->record_offset[at] == 0) {
            continue;
        }
        CHECK(vault_read_record(v, (uint32_t)(at / v->n_expert), (uint32_t)(at % v->n_expert),
                                record, err));
        done += v->record_bytes;
        CHECK(report(events, done, total, err));
    }
out:
    mem_free(record);
    return status;
}
