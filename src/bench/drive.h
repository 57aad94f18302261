/* drive.h: one figure for what the drive gives: records read in the way that the engine would
 * choose here, far from each other, with nothing computed meanwhile. */
#ifndef BENCH_DRIVE_H
#define BENCH_DRIVE_H

#include "bench/io_bench.h"
#include "cache/io_probe.h"

typedef struct drive {
    io_bench_file file;
    io_records records;
    uint8_t *memory; /* mem_pages [N_SLOTS][record_bytes], fewer when records are large */
    uint32_t n_slots;
    io_probe_result way;
} drive;

#define DRIVE_CLOSED ((drive){.file = {.f = FILE_CLOSED, .writer = FILE_WRITER_CLOSED}})

/* The records of a vault. On failure *d is closed. */
smoe_status drive_open_vault(drive *d, const char *path, smoe_err *err);
/* A file of n_bytes in dir, made for the purpose as io_bench_make does. */
smoe_status drive_open_dir(drive *d, const char *dir, uint64_t n_bytes, uint32_t record_bytes,
                           const io_bench_events *events, smoe_err *err);
void drive_close(drive *d);
/* Takes a third of a second, less when there are few records. *bytes_s is 0 when nothing can be
 * measured: records stay in the page cache, as in a file system that has no drive. */
smoe_status drive_measure(drive *d, double *bytes_s, smoe_err *err);

#endif
