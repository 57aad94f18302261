/* cmd_bench_policy.c: `smoe bench policy`: what rings of several sizes would hit under several
 * policies, over a recorded trace or a law of routing. Nothing is read but the trace. */
#include <stdio.h>
#include <string.h>

#include "app/app.h"
#include "app/bench_args.h"
#include "base/opts.h"
#include "bench/policy_sim.h"
#include "bench/shape.h"
#include "json/json_write.h"

enum { MAX_RINGS = 16, RING_TEXT = 32, MAX_ROW_BYTES = 4096, SEED = 1 };

struct policy_args {
    const char *replay, *routing, *shape, *rings;
    uint32_t n_layer, n_tokens;
    float half_life;
    bool json, help;
    const char *none[1];
};

static smoe_status make_trace(const struct policy_args *a, trace *t, smoe_err *err)
{
    const routing_law *law = &ROUTING_STICKY;
    model_shape shape;
    routing *r;
    TRY(args_parse_routing(a->routing ? a->routing : "sticky", &law, err));
    if (!law) {
        return err_set(err, SMOE_USAGE, "--routing model needs a model: record a trace with "
                       "smoe bench --record, and name it with --replay");
    }
    TRY(model_shape_get(a->shape, a->n_layer, &shape, err));
    const trace_shape routed = {shape.n_layer, shape.n_expert, shape.n_expert_used};
    trace_init(t, &routed, NULL);
    TRY(routing_new(&routed, law, SEED, &r, err));
    smoe_status status = routing_trace(r, a->n_tokens, t, err);
    routing_free(r);
    return status;
}

static smoe_status get_trace(const struct policy_args *a, trace *t, smoe_err *err)
{
    if (!a->replay == !a->shape) {
        return err_set(err, SMOE_USAGE,
                       a->replay ? "--replay and --shape exclude each other"
                                 : "say which choices: --replay FILE, or --shape NAME for those "
                                   "of a law");
    }
    if (a->replay && (a->routing || a->n_layer)) {
        return err_set(err, SMOE_USAGE, "--%s belongs to --shape; a trace has its own",
                       a->routing ? "routing" : "layers");
    }
    return a->replay ? trace_read(a->replay, t, err) : make_trace(a, t, err);
}

static smoe_status parse_rings(const char *text, uint32_t n_records, uint32_t *rings, size_t *n,
                               smoe_err *err)
{
    for (const char *p = text; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        char one[RING_TEXT];
        size_t len = strcspn(p, ",");
        double fraction;
        uint32_t n_slots;
        if (*n == MAX_RINGS || len >= sizeof one) {
            return err_set(err, SMOE_USAGE, "--ring takes up to %d sizes such as 800,25%%",
                           MAX_RINGS);
        }
        memcpy(one, p, len);
        one[len] = '\0';
        TRY(args_parse_ring(one, &n_slots, &fraction, err));
        n_slots = fraction > 0 ? (uint32_t)(fraction * n_records) : n_slots;
        n_slots = n_slots < n_records ? n_slots : n_records;
        rings[(*n)++] = n_slots ? n_slots : 1;
    }
    return SMOE_OK;
}

/* ---- output ---- */

static double cold_rate(const policy_result *r)
{
    return (double)r->n_hits / (double)r->n_asked;
}

static double warm_rate(const policy_result *r)
{
    return (double)r->n_hits_warm / (double)r->n_asked_warm;
}

static double missed(const policy_result *r)
{
    return (double)(r->n_asked_warm - r->n_hits_warm) / (double)r->n_tokens_warm;
}

static smoe_status print_json(enum policy policy, uint32_t n_slots, uint32_t n_records,
                              const policy_result *r, smoe_err *err)
{
    buf line;
    json_writer w;
    buf_init(&line, MAX_ROW_BYTES);
    jw_init(&w, &line);
    jw_begin_object(&w);
    jw_key(&w, "policy");
    jw_cstr(&w, policy_name(policy));
    jw_key(&w, "ring");
    jw_uint(&w, n_slots);
    jw_key(&w, "records");
    jw_uint(&w, n_records);
    jw_key(&w, "hit_rate_cold");
    jw_number(&w, cold_rate(r));
    jw_key(&w, "hit_rate_warm");
    jw_number(&w, warm_rate(r));
    jw_key(&w, "misses_per_token");
    jw_number(&w, missed(r));
    jw_end_object(&w);
    smoe_status status = jw_finish(&w, err);
    if (status == SMOE_OK) {
        puts(line.data);
    }
    buf_fini(&line);
    return status;
}

static void print_head(const trace *t)
{
    printf("%llu tokens in %llu passes; %u layers, %u of %u experts\n\n",
           (unsigned long long)t->n_tokens, (unsigned long long)t->n_passes, t->shape.n_layer,
           t->shape.n_used, t->shape.n_expert);
    printf("%21s %-23s   %-23s   %s\n", "", "hits, %, ring empty", "second half, %",
           "experts read per token");
    printf("%9s %9s", "ring", "of all");
    for (int i = 0; i < 3 * N_POLICIES; i++) {
        printf("%s %7s", i % N_POLICIES ? "" : "  ", policy_name((enum policy)(i % N_POLICIES)));
    }
    printf("\n");
}

static void print_row(uint32_t n_slots, uint32_t n_records, const policy_result r[N_POLICIES])
{
    printf("%9u %7.1f %%", n_slots, 100.0 * n_slots / n_records);
    for (int i = 0; i < 3 * N_POLICIES; i++) {
        const policy_result *p = &r[i % N_POLICIES];
        printf("%s %7.1f", i % N_POLICIES ? "" : "  ",
               i < N_POLICIES       ? 100 * cold_rate(p)
               : i < 2 * N_POLICIES ? 100 * warm_rate(p)
                                    : missed(p));
    }
    printf("\n");
}

static smoe_status judge(const struct policy_args *a, const trace *t, smoe_err *err)
{
    uint32_t rings[MAX_RINGS], n_records = t->shape.n_layer * t->shape.n_expert;
    size_t n_rings = 0;
    TRY(parse_rings(a->rings, n_records, rings, &n_rings, err));
    if (!a->json) {
        print_head(t);
    }
    for (size_t i = 0; i < n_rings; i++) {
        policy_result results[N_POLICIES];
        for (int policy = 0; policy < N_POLICIES; policy++) {
            TRY(policy_simulate(t, (enum policy)policy, rings[i], a->half_life, &results[policy],
                                err));
            if (a->json) {
                TRY(print_json((enum policy)policy, rings[i], n_records, &results[policy], err));
            }
        }
        if (!a->json) {
            print_row(rings[i], n_records, results);
        }
    }
    return SMOE_OK;
}

static smoe_status parse_args(struct policy_args *a, int argc, char **argv, smoe_err *err)
{
    size_t n_none;
    const opt table[] = {
        {"replay", OPT_TEXT, &a->replay, 0, 0, "FILE", "a trace of smoe bench --record", NULL},
        {"shape", OPT_TEXT, &a->shape, 0, 0, "NAME", "instead: choices for a model of this shape",
         NULL},
        {"layers", OPT_U32, &a->n_layer, 1, 512, "N", "of the shape; default: all", NULL},
        {"routing", OPT_TEXT, &a->routing, 0, 0, "LAW", "by uniform or sticky (default) routing",
         NULL},
        {"tokens", OPT_U32, &a->n_tokens, 2, 1e5, "N", "that choose, with --shape (1000)", NULL},
        {"ring", OPT_TEXT, &a->rings, 0, 0, "N,N",
         "experts, or parts of all (10%,25%,50%,75%)", NULL},
        {"half-life", OPT_FLOAT, &a->half_life, 0.01, 1e6, "X",
         "of a use in lfu, in passes (32)", NULL},
        {"json", OPT_FLAG, &a->json, 0, 0, NULL, "one object per ring and policy", NULL},
        {"help", OPT_FLAG, &a->help, 0, 0, NULL, "this text", NULL},
        {NULL, OPT_FLAG, NULL, 0, 0, NULL, NULL, NULL},
    };
    TRY(opts_parse(table, argc, argv, 1, a->none, 0, &n_none, err));
    if (a->help) {
        char text[4096];
        opts_help(table, text, sizeof text);
        printf("usage: smoe bench policy --replay FILE [flags]\n"
               "       smoe bench policy --shape NAME [flags]\n\n"
               "lru: the victim was used longest ago. lfu: used least often, old uses counting\n"
               "less. optimum: needed again last, which no policy can know beforehand.\n\n%s",
               text);
    }
    return SMOE_OK;
}

int cmd_bench_policy(int argc, char **argv)
{
    struct policy_args a = {.rings = "10%,25%,50%,75%", .n_tokens = 1000, .half_life = 32};
    smoe_err err = {0};
    trace t = {0};
    smoe_status status = parse_args(&a, argc, argv, &err);
    if (status == SMOE_OK && !a.help) {
        status = get_trace(&a, &t, &err);
        status = status == SMOE_OK ? judge(&a, &t, &err) : status;
    }
    trace_fini(&t);
    return status == SMOE_OK ? 0 : app_fail("bench policy", &err);
}
