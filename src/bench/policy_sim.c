/* policy_sim.c: see policy_sim.h.
 *
 * A policy is the key that a record gets when its demand has ended; the victim is the record of the
 * smallest key, ties to the lowest record. A heap of the resident records keeps them by key; those
 * of the running demand are not in it. */
#include "bench/policy_sim.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

#define NEVER UINT64_MAX
enum { NOT_RESIDENT = -1, IN_DEMAND = -2 };

typedef struct heap_item {
    double key;
    uint32_t record;
} heap_item;

typedef struct sim {
    const trace *trace;
    enum policy policy;
    uint32_t n_slots, n_records, n_resident;
    double half_life;
    uint32_t *asked;     /* [n_asked] records in order of demand */
    uint64_t *next;      /* [n_asked] when the same record is asked for again, or NEVER */
    uint64_t n_asked;
    uint64_t *demand_end; /* [n_passes * n_layer] in asked */
    heap_item *heap;     /* [n_in_heap], smallest key first */
    uint32_t n_in_heap;
    int32_t *place;      /* [n_records] in the heap, or NOT_RESIDENT, IN_DEMAND */
    double *log2_count;  /* [n_records] of the decayed count of uses */
    uint64_t *last_seen; /* [n_records] the last place in asked, while it is built */
    policy_result *out;
} sim;

const char *policy_name(enum policy policy)
{
    static const char *const names[N_POLICIES] = {"lru", "lfu", "optimum"};
    return names[policy];
}

/* ---- the heap ---- */

static bool is_before(heap_item a, heap_item b)
{
    return a.key < b.key || (a.key == b.key && a.record < b.record);
}

static void put(sim *s, uint32_t i, heap_item item)
{
    s->heap[i] = item;
    s->place[item.record] = (int32_t)i;
}

static void sift(sim *s, uint32_t i, heap_item item)
{
    while (i > 0 && is_before(item, s->heap[(i - 1) / 2])) {
        put(s, i, s->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child + 1 < s->n_in_heap && is_before(s->heap[child + 1], s->heap[child])) {
            child++;
        }
        if (child >= s->n_in_heap || !is_before(s->heap[child], item)) {
            break;
        }
        put(s, i, s->heap[child]);
        i = child;
    }
    put(s, i, item);
}

static void push(sim *s, heap_item item)
{
    sift(s, s->n_in_heap++, item);
}

static void take_out(sim *s, uint32_t i)
{
    heap_item last = s->heap[--s->n_in_heap];
    if (i < s->n_in_heap) {
        sift(s, i, last);
    }
}

/* ---- demands ---- */

/* The distinct experts of one layer of one pass, appended to s->asked. */
static void list_demand(sim *s, uint64_t token, uint32_t n_tokens, uint32_t layer)
{
    uint64_t begin = s->n_asked;
    for (uint64_t i = token; i < token + n_tokens; i++) {
        const uint16_t *experts = trace_at(s->trace, i, layer);
        for (uint32_t k = 0; k < s->trace->shape.n_used; k++) {
            uint32_t record = layer * s->trace->shape.n_expert + experts[k];
            uint64_t last = s->last_seen[record];
            if (last == NEVER || last < begin) {
                if (last != NEVER) {
                    s->next[last] = s->n_asked;
                }
                s->last_seen[record] = s->n_asked;
                s->next[s->n_asked] = NEVER;
                s->asked[s->n_asked++] = record;
            }
        }
    }
}

static double key_of(sim *s, uint64_t i, double now)
{
    uint32_t record = s->asked[i];
    if (s->policy == POLICY_LRU) {
        return (double)i;
    }
    if (s->policy == POLICY_OPT) {
        return s->next[i] == NEVER ? -INFINITY : -(double)s->next[i];
    }
    /* The sum of 2^(t / half_life) over the uses orders records as the decayed counts do, at any
     * time; kept as its logarithm, which does not overflow. */
    double use = now / s->half_life, count = s->log2_count[record];
    double high = use > count ? use : count, low = use > count ? count : use;
    s->log2_count[record] = high + log2(1 + exp2(low - high));
    return s->log2_count[record];
}

/* Everything in asked[begin .. end) is in the ring when it ends. */
static void run_piece(sim *s, uint64_t begin, uint64_t end, double now, bool is_warm)
{
    uint64_t n_hits = 0;
    for (uint64_t i = begin; i < end; i++) {
        int32_t place = s->place[s->asked[i]];
        if (place != NOT_RESIDENT) {
            take_out(s, (uint32_t)place);
            s->place[s->asked[i]] = IN_DEMAND;
            n_hits++;
        }
    }
    for (uint64_t i = begin; i < end; i++) {
        if (s->place[s->asked[i]] == IN_DEMAND) {
            continue;
        }
        if (s->n_resident == s->n_slots) {
            uint32_t victim = s->heap[0].record;
            take_out(s, 0);
            s->place[victim] = NOT_RESIDENT;
            s->n_resident--;
        }
        s->place[s->asked[i]] = IN_DEMAND;
        s->n_resident++;
    }
    for (uint64_t i = begin; i < end; i++) {
        push(s, (heap_item){key_of(s, i, now), s->asked[i]});
    }
    s->out->n_asked += end - begin;
    s->out->n_hits += n_hits;
    s->out->n_asked_warm += is_warm ? end - begin : 0;
    s->out->n_hits_warm += is_warm ? n_hits : 0;
}

static void list_demands(sim *s)
{
    const trace *t = s->trace;
    uint64_t token = 0, n = 0;
    for (uint64_t pass = 0; pass < t->n_passes; pass++) {
        uint32_t n_tokens = trace_pass_tokens(t, pass);
        for (uint32_t layer = 0; layer < t->shape.n_layer; layer++) {
            list_demand(s, token, n_tokens, layer);
            s->demand_end[n++] = s->n_asked;
        }
        token += n_tokens;
    }
}

static void run_demands(sim *s)
{
    const trace *t = s->trace;
    uint64_t at = 0;
    for (uint64_t i = 0; i < t->n_passes * t->shape.n_layer; i++) {
        uint64_t pass = i / t->shape.n_layer;
        bool is_warm = pass >= t->n_passes / 2;
        while (at < s->demand_end[i]) {
            uint64_t left = s->demand_end[i] - at, n = left < s->n_slots ? left : s->n_slots;
            run_piece(s, at, at + n, (double)pass, is_warm);
            at += n;
        }
        if (is_warm && i % t->shape.n_layer == 0) {
            s->out->n_tokens_warm += trace_pass_tokens(t, pass);
        }
    }
}

static smoe_status init(sim *s, smoe_err *err)
{
    const trace_shape *shape = &s->trace->shape;
    uint64_t n_most = s->trace->n_tokens * shape->n_layer * shape->n_used;
    s->asked = mem_calloc(n_most, sizeof *s->asked);
    s->next = mem_calloc(n_most, sizeof *s->next);
    s->demand_end = mem_calloc(s->trace->n_passes * shape->n_layer, sizeof *s->demand_end);
    s->heap = mem_calloc(s->n_records, sizeof *s->heap);
    s->place = mem_calloc(s->n_records, sizeof *s->place);
    s->log2_count = mem_calloc(s->n_records, sizeof *s->log2_count);
    s->last_seen = mem_calloc(s->n_records, sizeof *s->last_seen);
    if (!s->asked || !s->next || !s->demand_end || !s->heap || !s->place || !s->log2_count ||
        !s->last_seen) {
        return err_nomem(err, "the simulation of a ring", n_most * sizeof *s->next);
    }
    for (uint32_t i = 0; i < s->n_records; i++) {
        s->place[i] = NOT_RESIDENT;
        s->log2_count[i] = -INFINITY;
        s->last_seen[i] = NEVER;
    }
    return SMOE_OK;
}

static void fini(sim *s)
{
    mem_free(s->asked);
    mem_free(s->next);
    mem_free(s->demand_end);
    mem_free(s->heap);
    mem_free(s->place);
    mem_free(s->log2_count);
    mem_free(s->last_seen);
}

smoe_status policy_simulate(const trace *t, enum policy policy, uint32_t n_slots, double half_life,
                            policy_result *out, smoe_err *err)
{
    sim s = {.trace = t, .policy = policy, .n_slots = n_slots, .half_life = half_life, .out = out,
             .n_records = t->shape.n_layer * t->shape.n_expert};
    *out = (policy_result){0};
    smoe_status status = init(&s, err);
    if (status == SMOE_OK) {
        list_demands(&s);
        run_demands(&s);
    }
    fini(&s);
    return status;
}
