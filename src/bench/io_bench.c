/* io_bench.c: see io_bench.h. */
#include "bench/io_bench.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"

/* ---- the file ---- */

static bool is_cancelled(const io_bench_events *events)
{
    return events && events->cancelled && events->cancelled(events->ctx);
}

static smoe_status write_records(io_bench_file *b, uint64_t *record, const io_bench_events *events,
                                 smoe_err *err)
{
    rng random = {1};
    uint64_t n_bytes = (uint64_t)b->n * b->record_bytes;
    TRY(file_write(&b->writer, record, AIO_ALIGN, err)); /* offset 0 means: no record */
    for (uint32_t i = 0; i < b->n; i++) {
        if (is_cancelled(events)) {
            return err_set(err, SMOE_CANCELLED, "interrupted");
        }
        for (uint32_t k = 0; k < b->record_bytes / sizeof *record; k++) {
            record[k] = rng_next(&random);
        }
        b->offsets[i] = b->writer.n_written;
        TRY(file_write(&b->writer, record, b->record_bytes, err));
        if (events && events->progress) {
            events->progress(events->ctx, (uint64_t)(i + 1) * b->record_bytes, n_bytes);
        }
    }
    return SMOE_OK;
}

static smoe_status make(io_bench_file *b, const char *path, const io_bench_events *events,
                        smoe_err *err)
{
    b->offsets = mem_calloc(b->n, sizeof *b->offsets);
    uint64_t *record = mem_calloc(1, b->record_bytes);
    if (!b->offsets || !record) {
        mem_free(record);
        return err_nomem(err, "a record", b->record_bytes);
    }
    smoe_status status;
    CHECK(file_create(&b->writer, path, err));
    CHECK(write_records(b, record, events, err));
    if (fsync(b->writer.fd) != 0) {
        status = err_errno(err, SMOE_IO, "%s cannot be flushed to disk", b->writer.path_partial);
        goto out;
    }
    CHECK(file_open(&b->f, b->writer.path_partial, err));
out:
    mem_free(record);
    return status;
}

smoe_status io_bench_make(io_bench_file *b, const char *dir, uint64_t n_bytes,
                          uint32_t record_bytes, const io_bench_events *events, smoe_err *err)
{
    uint64_t n_free_bytes;
    uint64_t n = (n_bytes + record_bytes - 1) / record_bytes;
    *b = (io_bench_file){.f = FILE_CLOSED, .n = (uint32_t)n, .record_bytes = record_bytes,
                         .writer = FILE_WRITER_CLOSED};
    TRY(file_free_bytes(dir, &n_free_bytes, err));
    if (n_free_bytes < n_bytes + n_bytes / 8) {
        return err_set(err, SMOE_RANGE,
                       "%s has room for %llu bytes; a file of %llu is needed there to measure the "
                       "drive", dir, (unsigned long long)n_free_bytes, (unsigned long long)n_bytes);
    }
    char *path = path_join(dir, "smoe-bench-io");
    if (!path) {
        return err_nomem(err, "a path", AIO_ALIGN);
    }
    smoe_status status = make(b, path, events, err);
    mem_free(path);
    if (status != SMOE_OK) {
        io_bench_close(b);
    }
    return status;
}

smoe_status io_bench_open(io_bench_file *b, const char *path, const uint64_t *offsets, uint32_t n,
                          uint32_t record_bytes, smoe_err *err)
{
    *b = (io_bench_file){.f = FILE_CLOSED, .n = n, .record_bytes = record_bytes,
                         .writer = FILE_WRITER_CLOSED};
    b->offsets = mem_calloc(n, sizeof *b->offsets);
    if (!b->offsets) {
        return err_nomem(err, "the offsets of records", n * sizeof *b->offsets);
    }
    memcpy(b->offsets, offsets, n * sizeof *offsets);
    smoe_status status = file_open(&b->f, path, err);
    if (status != SMOE_OK) {
        io_bench_close(b);
    }
    return status;
}

void io_bench_close(io_bench_file *b)
{
    file_close(&b->f);
    file_abort(&b->writer);
    mem_free(b->offsets);
    b->offsets = NULL;
}

/* ---- the rows ---- */

static const uint32_t DEPTHS[] = {1, 2, 4, 8, 16, 32};
enum { N_DEPTHS = sizeof DEPTHS / sizeof *DEPTHS, MAX_DEPTH = 32 };

io_mode io_bench_way(uint32_t way, uint32_t depth)
{
    return (io_mode){way % 2 == 0 ? AIO_URING : AIO_THREADS, way < 2, depth};
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, uint32_t n)
{
    qsort(values, n, sizeof *values, compare);
    return values[n / 2];
}

static smoe_status measure_row(io_records *records, uint8_t *memory, uint64_t trial_ns,
                               uint32_t n_repeat, const io_bench_events *events,
                               io_bench_row *row, smoe_err *err)
{
    double bytes_s[IO_BENCH_N_WAYS][IO_BENCH_MAX_REPEAT];
    double cpu_s[IO_BENCH_N_WAYS][IO_BENCH_MAX_REPEAT];
    for (uint32_t i = 0; i < n_repeat; i++) {
        for (uint32_t way = 0; way < IO_BENCH_N_WAYS; way++) {
            if (is_cancelled(events)) {
                return err_set(err, SMOE_CANCELLED, "interrupted");
            }
            const io_trial_params p = {.mode = io_bench_way(way, row->depth), .memory = memory,
                                       .max_ns = trial_ns};
            io_rate rate = {0};
            smoe_err why = {0};
            smoe_status status = io_trial(records, &p, &rate, &why);
            if (status != SMOE_OK && status != SMOE_UNSUPPORTED) {
                *err = why;
                return status;
            }
            double n_bytes = (double)rate.n_reads * records->record_bytes;
            bytes_s[way][i] = rate.bytes_s;
            cpu_s[way][i] = n_bytes > 0 ? (double)rate.cpu_ns / n_bytes : 0; /* ns/B = s/GB */
        }
    }
    for (uint32_t way = 0; way < IO_BENCH_N_WAYS; way++) {
        row->bytes_s[way] = median(bytes_s[way], n_repeat);
        row->cpu_s_per_gb[way] = median(cpu_s[way], n_repeat);
    }
    return SMOE_OK;
}

smoe_status io_bench_run(const io_bench_file *b, uint64_t trial_ns, uint32_t n_repeat,
                         const io_bench_events *events, smoe_err *err)
{
    uint64_t n_bytes = (uint64_t)MAX_DEPTH * b->record_bytes;
    uint8_t *memory = mem_pages_alloc(n_bytes);
    if (!memory) {
        return err_nomem(err, "records in flight", n_bytes);
    }
    memset(memory, 1, n_bytes); /* the first touch is dear, and not the drive's */
    n_repeat = n_repeat < IO_BENCH_MAX_REPEAT ? n_repeat : IO_BENCH_MAX_REPEAT;
    smoe_status status = SMOE_OK;
    for (int in_order = 0; in_order < 2; in_order++) {
        io_records records = io_records_of(&b->f, b->offsets, b->n, b->record_bytes, in_order);
        for (size_t i = 0; i < N_DEPTHS; i++) {
            io_bench_row row = {.in_order = in_order, .depth = DEPTHS[i]};
            CHECK(measure_row(&records, memory, trial_ns, n_repeat ? n_repeat : 1, events, &row,
                              err));
            if (events && events->row) {
                events->row(events->ctx, &row);
            }
        }
    }
out:
    mem_pages_free(memory, n_bytes);
    return status;
}
