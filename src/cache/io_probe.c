/* io_probe.c: see io_probe.h. The trials, in this order, each as long as the time left allows:
 *
 *   one direct read by a thread      are they allowed; how slow is this drive
 *   io_uring, threads: direct        which mechanism
 *   the same: buffered               io_trial.h says how the page cache is kept out of this
 *   4, 16, 32 at a time              in what has won so far
 *
 * A mechanism or mode that the system refuses drops out with its sentence; one whose reads fail
 * drops out without. On a slow drive the later trials do not take place, and a small vault is read
 * before anything can be measured: then the preferred way stands. Of what is wished the first trial
 * and those of the depth remain. */
#include "cache/io_probe.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

enum {
    DEPTH = 8,
    MAX_DEPTH = 32,
    N_TRIALS = 7,                 /* that share the time */
    MAX_MEMORY_BYTES = 128 << 20, /* made present before the trials, at a cost */
};

static const double BETTER = 1.1;

struct probe {
    const io_probe_params *p;
    io_records records;
    uint32_t max_depth;  /* as memory allows */
    uint64_t end_ns, trial_ns;
    double bytes_s;      /* the best so far: says how long what is in flight takes */
    bool is_broken[2][2]; /* [kind][direct]: its reads fail */
    io_probe_result *out;
};

static uint32_t at_most(uint32_t n, uint32_t limit)
{
    return n < limit ? n : limit;
}

/* Whether the reads of a trial at this depth will end in time. */
static bool has_time(const struct probe *t, uint32_t depth)
{
    double in_flight_bytes = (double)depth * t->records.record_bytes;
    double drain_ns = t->bytes_s > 0 ? in_flight_bytes / t->bytes_s * 1e9 : 0;
    return clock_ns() + t->trial_ns + (uint64_t)drain_ns <= t->end_ns;
}

static bool is_refused(const struct probe *t, io_mode mode)
{
    return (mode.kind == AIO_URING && t->out->no_uring.code != SMOE_OK) ||
           (mode.direct && t->out->no_direct.code != SMOE_OK) ||
           t->is_broken[mode.kind][mode.direct];
}

/* Bytes per second in this mode; 0 when it is refused, fails, or time or records are too few.
 * Direct reads are tried with threads first, so what io_uring refuses later is io_uring. */
static smoe_status try_mode(struct probe *t, io_mode mode, uint32_t max_reads, double *bytes_s,
                            smoe_err *err)
{
    const io_trial_params params = {.mode = mode, .memory = t->p->memory, .max_ns = t->trial_ns,
                                    .max_reads = max_reads};
    io_rate rate = {0};
    smoe_err why = {0};
    *bytes_s = 0;
    if (is_refused(t, mode) || !has_time(t, mode.depth)) {
        return SMOE_OK;
    }
    smoe_status status = io_trial(&t->records, &params, &rate, &why);
    if (status == SMOE_NOMEM) {
        *err = why;
        return status;
    }
    if (status == SMOE_UNSUPPORTED) {
        *(mode.kind == AIO_URING ? &t->out->no_uring : &t->out->no_direct) = why;
    }
    t->is_broken[mode.kind][mode.direct] = status != SMOE_OK;
    if (rate.ns < t->trial_ns / 4) { /* a small vault, read at once: chance would decide */
        return SMOE_OK;
    }
    *bytes_s = rate.bytes_s;
    t->bytes_s = rate.bytes_s > t->bytes_s ? rate.bytes_s : t->bytes_s;
    return SMOE_OK;
}

/* The better mechanism for direct reads, or for buffered ones, at this depth; the wished one. */
static smoe_status choose_kind(struct probe *t, bool direct, uint32_t depth, io_mode *mode,
                               double *bytes_s, smoe_err *err)
{
    io_mode modes[2] = {{AIO_URING, direct, depth}, {AIO_THREADS, direct, depth}};
    double rates[2];
    for (int i = 0; i < 2; i++) {
        rates[i] = 0;
        if (io_wish_allows(&t->p->wish, modes[i])) {
            TRY(try_mode(t, modes[i], 0, &rates[i], err));
        }
    }
    int best = is_refused(t, modes[0]) || rates[1] > rates[0] * BETTER;
    best = t->p->wish.has_kind ? t->p->wish.kind == AIO_THREADS : best;
    *mode = modes[best];
    *bytes_s = rates[best];
    return SMOE_OK;
}

static smoe_status choose_depth(struct probe *t, smoe_err *err)
{
    static const uint32_t depths[] = {4, 16, 32};
    io_probe_result *out = t->out;
    for (size_t i = 0; i < sizeof depths / sizeof *depths && out->bytes_s > 0; i++) {
        io_mode mode = out->mode;
        double bytes_s;
        mode.depth = depths[i];
        if (mode.depth <= t->max_depth) {
            TRY(try_mode(t, mode, 0, &bytes_s, err));
            if (bytes_s > out->bytes_s * BETTER) {
                out->mode = mode;
                out->bytes_s = bytes_s;
            }
        }
    }
    return SMOE_OK;
}

/* By opening it once: a drive too slow for trials must not hide what the system refuses. */
static smoe_status check_one(const io_probe_params *p, aio_kind kind, bool direct, const char *name,
                             smoe_err *err)
{
    aio *a = NULL;
    smoe_err why = {0};
    const aio_params params = {.file = p->file, .kind = kind, .direct = direct, .depth = 1,
                               .max_queued = 1};
    smoe_status status = aio_open(&params, &a, &why);
    aio_close(a);
    if (status == SMOE_UNSUPPORTED) {
        return err_set(err, status, "--io %s cannot be had: %s", name, why.text);
    }
    if (status == SMOE_NOMEM) {
        *err = why;
        return status;
    }
    return SMOE_OK;
}

static smoe_status check_wish(const io_probe_params *p, smoe_err *err)
{
    if (p->wish.has_mode && p->wish.direct) {
        TRY(check_one(p, AIO_THREADS, true, "direct", err));
    }
    if (p->wish.has_kind && p->wish.kind == AIO_URING) {
        TRY(check_one(p, AIO_URING, false, "uring", err));
    }
    return SMOE_OK;
}

static smoe_status run_trials(struct probe *t, smoe_err *err)
{
    const io_wish *wish = &t->p->wish;
    io_probe_result *out = t->out;
    uint32_t n_workers = t->p->n_workers;
    uint32_t depth = n_workers ? n_workers : DEPTH;
    uint32_t trial_depth = at_most(depth, t->max_depth);
    io_mode buffered;
    double direct_bytes_s, buffered_bytes_s, ignored;
    if (!wish->has_mode || wish->direct) {
        TRY(try_mode(t, (io_mode){AIO_THREADS, true, 1}, 1, &ignored, err));
    }
    TRY(choose_kind(t, true, trial_depth, &out->mode, &direct_bytes_s, err));
    TRY(choose_kind(t, false, trial_depth, &buffered, &buffered_bytes_s, err));
    bool is_direct = !is_refused(t, out->mode) && buffered_bytes_s <= direct_bytes_s * BETTER;
    is_direct = wish->has_mode ? wish->direct : is_direct;
    out->mode = is_direct ? out->mode : buffered;
    out->bytes_s = is_direct ? direct_bytes_s : buffered_bytes_s;
    out->other_bytes_s = is_direct ? buffered_bytes_s : direct_bytes_s;
    if (n_workers == 0) {
        TRY(choose_depth(t, err));
    }
    /* Memory bounds what could be tried, not what may be opened. */
    out->mode.depth = out->mode.depth == trial_depth ? depth : out->mode.depth;
    return SMOE_OK;
}

/* The first touch of a page costs more than a read into it: it must not fall into one trial. */
static void make_present(uint8_t *memory, uint64_t n_bytes)
{
    for (uint64_t i = 0; i < n_bytes; i += 4096) {
        *(volatile uint8_t *)(memory + i) = 0;
    }
}

smoe_status io_probe(const io_probe_params *p, io_probe_result *out, smoe_err *err)
{
    struct probe t = {.p = p, .out = out,
                      .records = io_records_of(p->file, p->offsets, p->n_records, p->record_bytes,
                                               false),
                      .end_ns = clock_ns() + p->max_ns, .trial_ns = p->max_ns / (N_TRIALS + 1)};
    *out = (io_probe_result){0};
    uint32_t by_memory = MAX_MEMORY_BYTES / p->record_bytes;
    t.max_depth = at_most(p->n_slots, by_memory > DEPTH ? by_memory : DEPTH);
    t.max_depth = at_most(t.max_depth, p->n_workers ? p->n_workers : MAX_DEPTH);
    t.max_depth = at_most(t.max_depth, AIO_MAX_DEPTH);
    TRY(check_wish(p, err));
    make_present(p->memory, (uint64_t)t.max_depth * p->record_bytes);
    smoe_status status = run_trials(&t, err);
    out->mode.depth = at_most(out->mode.depth, AIO_MAX_DEPTH);
    return status;
}

void io_probe_sentence(const io_probe_result *r, char out[IO_PROBE_SENTENCE_BYTES])
{
    const char *other = r->mode.direct ? "buffered" : "direct";
    char rates[96] = "";
    if (r->bytes_s > 0 && r->other_bytes_s > 0) {
        snprintf(rates, sizeof rates, " (%.2f GB/s; %s %.2f GB/s)", r->bytes_s / 1e9, other,
                 r->other_bytes_s / 1e9);
    } else if (r->bytes_s > 0) {
        snprintf(rates, sizeof rates, " (%.2f GB/s; %s not measured)", r->bytes_s / 1e9, other);
    } else {
        snprintf(rates, sizeof rates, " (not measured)");
    }
    snprintf(out, IO_PROBE_SENTENCE_BYTES, "reads: %s, %s, %u at a time%s%s%s%s%s",
             aio_kind_name(r->mode.kind), r->mode.direct ? "direct" : "buffered", r->mode.depth,
             rates, r->no_direct.code ? "; " : "", r->no_direct.code ? r->no_direct.text : "",
             r->no_uring.code ? "; " : "", r->no_uring.code ? r->no_uring.text : "");
}
