/* io_trial.c: see io_trial.h. */
#include "cache/io_trial.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* ---- the walk ---- */

static uint32_t gcd(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

io_records io_records_of(const file *f, const uint64_t *offsets, uint32_t n, uint32_t record_bytes,
                         bool in_order)
{
    /* Near the golden section of n and coprime to it: far jumps, and all are reached. */
    uint32_t stride = in_order || n < 3 ? 1 : (uint32_t)(n * 0.618);
    while (gcd(n, stride) != 1) {
        stride++;
    }
    return (io_records){f, offsets, n, record_bytes, 0, stride};
}

/* ---- the page cache ---- */

/* Whether any page of it is in the page cache, or the system does not say. */
static bool is_cached(const file *f, uint64_t offset, uint64_t n_bytes)
{
    enum { N_PAGES = 1024 };
    unsigned char in_core[N_PAGES];
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    bool cached = false;
    for (uint64_t at = 0; at < n_bytes && !cached; at += N_PAGES * page_bytes) {
        uint64_t left = n_bytes - at, most = N_PAGES * page_bytes;
        size_t part = (size_t)(left < most ? left : most);
        void *map = mmap(NULL, part, PROT_READ, MAP_SHARED, f->fd, (off_t)(offset + at));
        if (map == MAP_FAILED) {
            return true;
        }
        memset(in_core, 1, sizeof in_core);
        mincore(map, part, (void *)in_core); /* of char on some systems, unsigned char on others */
        for (uint64_t i = 0; i * page_bytes < part; i++) {
            cached |= in_core[i] & 1;
        }
        munmap(map, part);
    }
    return cached;
}

/* ---- the trial ---- */

struct run {
    io_records *r;
    const io_trial_params *p;
    aio *a;
    uint64_t start_ns;
    uint32_t n_left;     /* records that may still be looked at */
    uint32_t n_begun, n_done;
    uint64_t offsets[AIO_MAX_DEPTH]; /* by place in memory; 0 = free */
};

/* The offset of the next record that can be read, or 0. */
static uint64_t next_record(struct run *t)
{
    io_records *r = t->r;
    uint32_t max_reads = t->p->max_reads;
    while (t->n_left > 0 && (max_reads == 0 || t->n_begun < max_reads) &&
           clock_ns() - t->start_ns < t->p->max_ns) {
        uint64_t offset = r->offsets[r->at];
        r->at = (uint32_t)(((uint64_t)r->at + r->stride) % r->n);
        t->n_left--;
        if (offset == 0) {
            continue;
        }
        if (t->p->mode.direct) {
            return offset;
        }
        file_forget(r->file, offset, r->record_bytes);
        if (!is_cached(r->file, offset, r->record_bytes)) {
            return offset;
        }
    }
    return 0;
}

static void begin_reads(struct run *t)
{
    aio_read reads[AIO_MAX_DEPTH];
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->p->mode.depth; i++) {
        if (t->offsets[i] == 0 && (t->offsets[i] = next_record(t)) != 0) {
            reads[n++] = (aio_read){t->offsets[i],
                                    t->p->memory + (uint64_t)i * t->r->record_bytes,
                                    t->r->record_bytes, i};
            t->n_begun++;
        }
    }
    aio_submit(t->a, reads, n);
}

static smoe_status run_reads(struct run *t, smoe_err *err)
{
    aio_done done[AIO_MAX_DEPTH];
    for (begin_reads(t); aio_n_pending(t->a) > 0; begin_reads(t)) {
        uint32_t n = aio_reap(t->a, done, AIO_MAX_DEPTH, true);
        for (uint32_t i = 0; i < n; i++) {
            uint64_t *offset = &t->offsets[done[i].tag];
            if (done[i].error != 0) {
                return err_set(err, SMOE_IO, "%s: reading %u bytes at offset %llu failed: %s",
                               t->r->file->path, t->r->record_bytes, (unsigned long long)*offset,
                               strerror(done[i].error));
            }
            if (!t->p->mode.direct) {
                file_forget(t->r->file, *offset, t->r->record_bytes);
            }
            *offset = 0;
            t->n_done++;
        }
    }
    return SMOE_OK;
}

static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

smoe_status io_trial(io_records *r, const io_trial_params *p, io_rate *out, smoe_err *err)
{
    struct run t = {.r = r, .p = p, .n_left = r->n};
    const aio_params params = {
        .file = r->file, .kind = p->mode.kind, .direct = p->mode.direct, .depth = p->mode.depth,
        .max_queued = p->mode.depth, .memory = p->is_registered ? p->memory : NULL,
        .memory_bytes = (uint64_t)p->mode.depth * r->record_bytes};
    TRY(aio_open(&params, &t.a, err));
    uint64_t cpu_start_ns = cpu_ns();
    t.start_ns = clock_ns();
    smoe_status status = run_reads(&t, err);
    uint64_t ns = clock_ns() - t.start_ns;
    if (status == SMOE_OK) {
        *out = (io_rate){.n_reads = t.n_done, .ns = ns, .cpu_ns = cpu_ns() - cpu_start_ns,
                         .bytes_s = ns ? (double)t.n_done * r->record_bytes * 1e9 / (double)ns : 0,
                         .is_registered = aio_is_registered(t.a)};
    }
    aio_close(t.a);
    return status;
}
