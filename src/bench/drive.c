/* drive.c: see drive.h. */
#include "bench/drive.h"

#include "base/mem.h"
#include "formats/vault.h"

enum {
    MEASURE_NS = 333 * 1000 * 1000,
    MAX_SLOTS = 32,
    MIN_SLOTS = 8, /* what the probe asks for */
    SLOTS_BYTES = 128 << 20 /* all slots together, but for their least number */
};

static smoe_status choose_way(drive *d, smoe_err *err)
{
    uint64_t record_bytes = d->file.record_bytes, n = SLOTS_BYTES / record_bytes;
    d->n_slots = (uint32_t)(n < MIN_SLOTS ? MIN_SLOTS : n > MAX_SLOTS ? MAX_SLOTS : n);
    d->memory = mem_pages_alloc(d->n_slots * record_bytes);
    if (!d->memory) {
        return err_nomem(err, "what is read to measure the drive", d->n_slots * record_bytes);
    }
    d->records = io_records_of(&d->file.f, d->file.offsets, d->file.n, d->file.record_bytes, false);
    const io_probe_params params = {.file = &d->file.f,
                                    .offsets = d->file.offsets,
                                    .memory = d->memory,
                                    .n_records = d->file.n,
                                    .n_slots = d->n_slots,
                                    .record_bytes = d->file.record_bytes,
                                    .max_ns = IO_PROBE_NS};
    return io_probe(&params, &d->way, err);
}

smoe_status drive_open_vault(drive *d, const char *path, smoe_err *err)
{
    smoe_status status;
    vault v = {.st = {.file = FILE_CLOSED}};
    *d = DRIVE_CLOSED;
    CHECK(vault_open(&v, path, err));
    CHECK(io_bench_open(&d->file, path, v.record_offset, v.n_layer * v.n_expert,
                        (uint32_t)v.record_bytes, err));
    CHECK(choose_way(d, err));
out:
    vault_close(&v);
    if (status != SMOE_OK) {
        drive_close(d);
    }
    return status;
}

smoe_status drive_open_dir(drive *d, const char *dir, uint64_t n_bytes, uint32_t record_bytes,
                           const io_bench_events *events, smoe_err *err)
{
    *d = DRIVE_CLOSED;
    smoe_status status = io_bench_make(&d->file, dir, n_bytes, record_bytes, events, err);
    status = status == SMOE_OK ? choose_way(d, err) : status;
    if (status != SMOE_OK) {
        drive_close(d);
    }
    return status;
}

void drive_close(drive *d)
{
    mem_pages_free(d->memory, (size_t)d->n_slots * d->file.record_bytes);
    io_bench_close(&d->file);
    *d = DRIVE_CLOSED;
}

smoe_status drive_measure(drive *d, double *bytes_s, smoe_err *err)
{
    io_rate rate;
    const io_trial_params params = {.mode = d->way.mode, .memory = d->memory,
                                    .is_registered = true, .max_ns = MEASURE_NS};
    TRY(io_trial(&d->records, &params, &rate, err));
    *bytes_s = rate.bytes_s;
    return SMOE_OK;
}
