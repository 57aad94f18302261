/* aio.h: reads that run while something else is computed: one interface, two mechanisms.
 *
 * The owner submits reads of whole records and later reaps them, in whatever order the drive
 * finishes. All calls come from one thread. Short reads are completed and failing ones retried a
 * bounded number of times here, above the mechanism, so that every mechanism ends the same way
 * (design A6). Reads are queued first in, first out, and at most `depth` of them are in flight;
 * queued ones are started by aio_submit and aio_reap only, so an owner that is busy calls aio_reap
 * now and then to keep the drive busy too. */
#ifndef CACHE_AIO_H
#define CACHE_AIO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"

enum {
    AIO_ALIGN = 16384, /* of offset, len and data: what direct reads of any drive accept */
    AIO_MAX_DEPTH = 256,
};

typedef struct aio_read {
    uint64_t offset; /* in the file */
    uint8_t *data;   /* stays valid and untouched by others until the read is reaped */
    uint32_t len;    /* 1 .. 1 GiB, a multiple of AIO_ALIGN like offset and data */
    uint32_t tag;    /* the owner's, unique among pending reads; comes back in aio_done */
} aio_read;

typedef struct aio_done {
    uint32_t tag;
    int error; /* 0: all of data is there; else an errno value, and data is undefined: EIO after
                * the retries, ENODATA when the file ends before offset + len */
} aio_done;

typedef enum aio_kind { AIO_URING, AIO_THREADS } aio_kind;

typedef struct aio_params {
    const file *file;    /* opened once more by its path; borrowed during aio_open only */
    aio_kind kind;
    bool direct;         /* O_DIRECT (F_NOCACHE on macOS); else buffered, kernel read-ahead off */
    uint32_t depth;      /* reads in flight at most; the number of threads; 1 .. AIO_MAX_DEPTH */
    uint32_t max_queued; /* reads pending at once at most, with those in flight; at least 1 */
    uint8_t *memory;     /* where every read's data lies, for io_uring to register (pins it and
                          * makes it present); NULL = registers nothing */
    uint64_t memory_bytes;
    struct aio_backend *backend; /* NULL = that of kind. Tests: another one (aio_backend.h), taken
                                  * over by aio_open, even if it fails */
} aio_params;

typedef struct aio aio;

/* SMOE_UNSUPPORTED: io_uring is not there or is forbidden, or the file system refuses direct reads;
 * the sentence says which, and the caller goes on without. SMOE_RANGE: depth. SMOE_IO: the path now
 * names another file than p->file. */
smoe_status aio_open(const aio_params *p, aio **out, smoe_err *err);
void aio_close(aio *a); /* waits for what is in flight, forgets what is queued; NULL is fine */

/* Queues n reads, in this order, and starts as many as depth allows with one system call.
 * aio_n_pending + n <= max_queued. */
void aio_submit(aio *a, const aio_read *reads, uint32_t n);
/* Takes back a queued read; false when it has been started or is done. */
bool aio_withdraw(aio *a, uint32_t tag);
/* Finished reads, at most max; starts queued ones in their place. wait: blocks until there is one;
 * 0 only when nothing is pending. Without wait it takes what is there. */
uint32_t aio_reap(aio *a, aio_done *done, uint32_t max, bool wait);
uint32_t aio_n_pending(const aio *a); /* queued or in flight, not yet reaped */
bool aio_is_registered(const aio *a); /* io_uring took p->memory: the system allows that much */
const char *aio_kind_name(aio_kind kind); /* "io_uring", "threads" */

#endif
