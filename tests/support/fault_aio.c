/* fault_aio.c: see fault_aio.h. All on the owner's thread but the reads themselves. */
#include "fault_aio.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

struct place {
    aio_op op;
    bool is_wrong;
    uint64_t delay_ns;
};

struct held {
    aio_result result;
    uint64_t due_ns;
};

struct fault_aio {
    aio_backend base;
    aio_backend *inner;
    fault_rule rules[FAULT_MAX_RULES];
    uint32_t n_rules, n_faults;
    struct place places[AIO_MAX_DEPTH];
    struct held held[AIO_MAX_DEPTH]; /* results that wait for their time */
    uint32_t n_held;
};

static void hold(struct fault_aio *f, aio_result result, uint64_t delay_ns)
{
    f->held[f->n_held++] = (struct held){result, clock_ns() + delay_ns};
}

static const fault_rule *apply(struct fault_aio *f, const aio_op *op)
{
    for (uint32_t i = 0; i < f->n_rules; i++) {
        fault_rule *r = &f->rules[i];
        if (r->n_times > 0 && op->offset >= r->begin && op->offset < r->end) {
            r->n_times -= r->n_times != FAULT_FOR_EVER;
            f->n_faults++;
            return r;
        }
    }
    return NULL;
}

static void start(aio_backend *b, const aio_op *ops, uint32_t n)
{
    struct fault_aio *f = (struct fault_aio *)b;
    for (uint32_t i = 0; i < n; i++) {
        aio_op op = ops[i];
        const fault_rule *r = apply(f, &op);
        if (r && r->kind == FAULT_ERROR) {
            hold(f, (aio_result){op.place, -(int32_t)r->amount}, 0);
            continue;
        }
        if (r && r->kind == FAULT_SHORT && r->amount < op.len) {
            op.len = r->amount;
        }
        f->places[op.place] = (struct place){
            .op = op, .is_wrong = r && r->kind == FAULT_WRONG,
            .delay_ns = r && r->kind == FAULT_SLOW ? r->amount * UINT64_C(1000000) : 0};
        f->inner->start(f->inner, &op, 1);
    }
}

/* What the threads have read is held, without delay where no rule says so. */
static void collect(struct fault_aio *f)
{
    aio_result result;
    while (f->inner->finish(f->inner, &result, 1, false) == 1) {
        const struct place *p = &f->places[result.place];
        if (p->is_wrong && result.n_bytes > 0) {
            p->op.data[result.n_bytes / 2] ^= 0xff;
        }
        hold(f, result, p->delay_ns);
    }
}

static uint32_t finish(aio_backend *b, aio_result *results, uint32_t max, bool wait)
{
    struct fault_aio *f = (struct fault_aio *)b;
    for (;;) {
        uint32_t n = 0;
        collect(f);
        for (uint32_t i = 0; i < f->n_held && n < max;) {
            if (f->held[i].due_ns <= clock_ns()) {
                results[n++] = f->held[i].result;
                f->held[i] = f->held[--f->n_held];
            } else {
                i++;
            }
        }
        if (n > 0 || !wait) {
            return n;
        }
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
}

static void close_fault(aio_backend *b)
{
    struct fault_aio *f = (struct fault_aio *)b;
    f->inner->close(f->inner);
    free(f);
}

aio_backend *fault_aio_new(int fd, uint32_t depth)
{
    struct fault_aio *f = calloc(1, sizeof *f);
    const aio_backend_params p = {.fd = fd, .depth = depth};
    if (!f || aio_threads_open(&p, &f->inner, NULL) != SMOE_OK) {
        free(f);
        return NULL;
    }
    f->base = (aio_backend){.start = start, .finish = finish, .close = close_fault};
    return &f->base;
}

void fault_aio_set(aio_backend *b, const fault_rule *rules, uint32_t n)
{
    struct fault_aio *f = (struct fault_aio *)b;
    f->n_rules = n < FAULT_MAX_RULES ? n : FAULT_MAX_RULES;
    if (n > 0) {
        memcpy(f->rules, rules, f->n_rules * sizeof *rules);
    }
}

uint32_t fault_aio_n_faults(const aio_backend *b)
{
    return ((const struct fault_aio *)b)->n_faults;
}
