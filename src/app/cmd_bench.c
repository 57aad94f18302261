/* cmd_bench.c: `smoe bench`: speed of a model, or of a synthetic one of a named shape, beside what
 * this machine can do. Runs the engine in this process. `smoe bench io` and `smoe bench policy` are
 * in cmd_bench_io.c and cmd_bench_policy.c. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/app.h"
#include "app/args.h"
#include "app/bench_args.h"
#include "app/progress.h"
#include "base/cpu.h"
#include "base/mem.h"
#include "base/opts.h"
#include "bench/bench.h"
#include "bench/synthetic.h"
#include "json/json_write.h"
#include "shatter/shatter.h"

enum { MAX_LIST = 16, MAX_TOKENS = 1 << 24, NAME_BYTES = 96, MAX_ROW_BYTES = 1 << 16 };

struct list {
    uint32_t values[MAX_LIST];
    size_t n;
};

struct bench_args {
    const char *model, *shape, *experts, *scout, *dir, *prompts, *depths, *kv_type;
    const char *ring, *routing, *record, *replay;
    uint32_t n_layer;
    bool json, help;
    struct list prompt_list, depth_list;
    trace recorded, replayed;
    bench_options options;
    char name[NAME_BYTES]; /* of shape or model */
    bool has_head;         /* the table's head is printed */
    char *temp_dir;        /* made here, removed at the end */
};

/* "512,2048"; "0" is the empty list. */
static smoe_status parse_list(const char *text, const char *flag, struct list *list, smoe_err *err)
{
    const char *p = text;
    for (bool more = true; more;) {
        char *end;
        unsigned long long v = isdigit((unsigned char)*p) ? strtoull(p, &end, 10) : 0;
        bool ok = isdigit((unsigned char)*p) && v <= MAX_TOKENS && (*end == ',' || *end == '\0');
        if (!ok || list->n == MAX_LIST || (v == 0 && strcmp(text, "0") != 0)) {
            return err_set(err, SMOE_USAGE,
                           "--%s takes up to %d numbers of tokens such as 512,2048, or 0 for none; "
                           "found \"%.40s\"",
                           flag, MAX_LIST, text);
        }
        if (v > 0) {
            list->values[list->n++] = (uint32_t)v;
        }
        more = *end == ',';
        p = end + 1;
    }
    return SMOE_OK;
}

/* ---- rows ---- */

static void put_text(json_writer *w, const char *key, const char *value)
{
    jw_key(w, key);
    jw_cstr(w, value);
}

static void put_count(json_writer *w, const char *key, uint32_t value)
{
    jw_key(w, key);
    jw_uint(w, value);
}

static void put_number(json_writer *w, const char *key, double value)
{
    jw_key(w, key);
    jw_number(w, value);
}

static void write_row(const struct bench_args *a, const bench_row *row, json_writer *w)
{
    jw_begin_object(w);
    put_text(w, "shape", a->name);
    put_count(w, "layers", row->work->n_layer);
    put_text(w, "experts", dtype_get(row->work->experts)->name);
    put_text(w, "scout", dtype_get(row->work->scout)->name);
    put_count(w, "threads", row->n_threads);
    put_text(w, "isa", row->isa);
    put_count(w, "n_ctx", row->n_ctx);
    put_count(w, "n_prompt", row->n_prompt);
    put_count(w, "n_gen", row->n_gen);
    put_number(w, "seconds", row->seconds);
    put_number(w, "prefill_tok_s", row->prefill_tok_s);
    put_number(w, "decode_tok_s", row->decode_tok_s);
    put_number(w, "weight_gb_s", row->weight_bytes_s / 1e9);
    put_number(w, "kv_gb_s", row->kv_bytes_s / 1e9);
    put_number(w, "gop_s", row->ops_s / 1e9);
    put_text(w, "routing", a->routing ? a->routing : a->replay ? "replay" : "model");
    put_count(w, "ring", row->n_ring);
    put_count(w, "records", row->n_records);
    put_number(w, "hit_rate", row->hit_rate);
    put_number(w, "bytes_read_per_token", row->read_bytes_per_token);
    put_number(w, "read_gb_s", row->read_bytes_s / 1e9);
    put_number(w, "ttft_ms", row->ttft_seconds * 1e3);
    put_text(w, "bound", row->bound);
    put_number(w, "bound_fraction", row->bound_fraction);
    put_number(w, "drive_gb_s", row->drive_bytes_s / 1e9);
    put_number(w, "dram_gb_s", row->dram_bytes_s / 1e9);
    put_number(w, "int_gop_s", row->int_ops_s / 1e9);
    put_number(w, "float_gop_s", row->float_ops_s / 1e9);
    jw_end_object(w);
}

static void print_json(const struct bench_args *a, const bench_row *row)
{
    buf line;
    json_writer w;
    smoe_err err;
    buf_init(&line, MAX_ROW_BYTES);
    jw_init(&w, &line);
    write_row(a, row, &w);
    if (jw_finish(&w, &err) == SMOE_OK) {
        puts(line.data);
    } else {
        fprintf(stderr, "smoe bench: %s\n", err.text);
    }
    buf_fini(&line);
}

static void print_table_head(const struct bench_args *a, const bench_row *row)
{
    printf("%s: %u layers, experts %s, scout %s; %u thread%s, %s; a ring of %u of %u experts\n\n",
           a->name, row->work->n_layer, dtype_get(row->work->experts)->name,
           dtype_get(row->work->scout)->name, row->n_threads, row->n_threads == 1 ? "" : "s",
           row->isa, row->n_ring, row->n_records);
    printf("%-8s %7s %7s %10s %10s %9s %8s %9s %7s %10s  %-8s %11s %8s\n", "", "context", "tokens",
           "tokens/s", "first", "weights", "KV", "work", "hits", "read/token", "bound", "limit",
           "reached");
}

static void print_table_row(struct bench_args *a, const bench_row *row)
{
    bool is_prefill = row->n_gen == 0, is_compute = strcmp(row->bound, "compute") == 0;
    bool is_int = dtype_get(row->work->experts)->is_quantized;
    double limit = is_compute ? (is_int ? row->int_ops_s : row->float_ops_s)
                   : strcmp(row->bound, "disk") == 0 ? row->drive_bytes_s : row->dram_bytes_s;
    char text[32];
    if (!a->has_head) {
        print_table_head(a, row);
        a->has_head = true;
    }
    snprintf(text, sizeof text, is_compute ? "%.0f GOP/s" : "%.2f GB/s", limit / 1e9);
    printf("%-8s %7u %7u %10.2f %7.0f ms %4.1f GB/s %3.1f GB/s %4.0f GOP/s %5.1f %% %7.2f MB  "
           "%-8s %11s %6.1f %%\n",
           is_prefill ? "prefill" : "decode", row->n_ctx,
           is_prefill ? row->n_prompt : row->n_gen,
           is_prefill ? row->prefill_tok_s : row->decode_tok_s, row->ttft_seconds * 1e3,
           row->weight_bytes_s / 1e9, row->kv_bytes_s / 1e9, row->ops_s / 1e9, 100 * row->hit_rate,
           row->read_bytes_per_token / 1e6, row->bound, text, 100 * row->bound_fraction);
}

static void on_row(void *ctx, const bench_row *row)
{
    struct bench_args *a = ctx;
    if (a->json) {
        print_json(a, row);
    } else {
        print_table_row(a, row);
    }
    fflush(stdout);
}

static bool is_cancelled(void *ctx)
{
    (void)ctx;
    return stop_signal_seen();
}

/* ---- the model ---- */

static smoe_status make_temp_dir(struct bench_args *a, smoe_err *err)
{
    const char *base = getenv("TMPDIR");
    char *path = path_join(base && *base ? base : "/tmp", "smoe-bench-XXXXXX");
    if (!path) {
        return err_nomem(err, "a path", NAME_BYTES);
    }
    if (!mkdtemp(path)) {
        smoe_status status = err_errno(err, SMOE_IO,
                                       "no directory %s can be made for the model's files; name "
                                       "one with --dir", path);
        mem_free(path);
        return status;
    }
    a->temp_dir = path;
    a->dir = path;
    return SMOE_OK;
}

static void on_progress(void *ctx, uint64_t done_bytes, uint64_t total_bytes)
{
    progress_update(ctx, done_bytes, total_bytes);
}

static smoe_status write_model(const struct bench_args *a, synthetic *s, smoe_err *err)
{
    pool *threads = NULL;
    progress bar;
    char size[32];
    const synthetic_events events = {&bar, on_progress, is_cancelled};
    uint32_t n_threads = a->options.engine.n_threads;
    TRY(pool_new(n_threads ? n_threads : cpu_n_cores(), &threads, err));
    fprintf(stderr, "writing %s with %u layers, %s, into %s\n", a->name, s->shape.n_layer,
            shatter_size_text(s->n_bytes, size), a->dir);
    progress_begin(&bar, "written");
    smoe_status status = synthetic_write(s, threads, &events, err);
    progress_end(&bar);
    pool_free(threads);
    return status;
}

static smoe_status measure(struct bench_args *a, const char *vault_path, const char *scout_path,
                           smoe_err *err)
{
    const bench_events events = {a, on_row, is_cancelled};
    a->options.engine.vault_path = vault_path;
    a->options.engine.scout_path = scout_path;
    return bench_run(&a->options, &events, err);
}

static smoe_status bench_shape(struct bench_args *a, smoe_err *err)
{
    smoe_status status;
    model_shape shape;
    synthetic s = {0};
    dtype experts = DTYPE_Q4_K, dense = DTYPE_Q8_0;
    if (a->model) {
        return err_set(err, SMOE_USAGE, "name a model or a --shape, not both");
    }
    TRY(model_shape_get(a->shape, a->n_layer, &shape, err));
    TRY(bench_check(&a->options, shape.n_ctx_train, err));
    TRY(args_parse_weight_type(a->experts, "experts", &experts, err));
    TRY(args_parse_weight_type(a->scout, "scout", &dense, err));
    snprintf(a->name, sizeof a->name, "%s", shape.name);
    if (!a->dir) {
        TRY(make_temp_dir(a, err));
    }
    TRY(synthetic_init(&s, &shape, experts, dense, a->dir, err));
    if (!s.is_written) {
        CHECK(write_model(a, &s, err));
    }
    CHECK(measure(a, s.vault_path, s.scout_path, err));
out:
    if (a->temp_dir) {
        unlink(s.vault_path);
        unlink(s.scout_path);
    }
    synthetic_fini(&s);
    return status;
}

/* "dir/name.smoe" -> name */
static void set_name(struct bench_args *a, const char *vault_path)
{
    const char *slash = strrchr(vault_path, '/');
    snprintf(a->name, sizeof a->name, "%s", slash ? slash + 1 : vault_path);
    char *dot = strrchr(a->name, '.');
    if (dot && strcmp(dot, ".smoe") == 0) {
        *dot = '\0';
    }
}

static smoe_status bench_model(struct bench_args *a, smoe_err *err)
{
    char *vault_path = NULL, *scout_path = NULL;
    const char *given = a->n_layer ? "layers" : a->experts ? "experts" : a->scout ? "scout"
                        : a->dir ? "dir" : NULL;
    if (given) {
        return err_set(err, SMOE_USAGE, "--%s says how to make the model of a --shape; name one",
                       given);
    }
    TRY(app_find_model(a->model, &vault_path, &scout_path, err));
    set_name(a, vault_path);
    smoe_status status = measure(a, vault_path, scout_path, err);
    mem_free(vault_path);
    mem_free(scout_path);
    return status;
}

/* ---- arguments ---- */

static smoe_status set_lists(struct bench_args *a, smoe_err *err)
{
    TRY(parse_list(a->prompts, "prompt", &a->prompt_list, err));
    TRY(parse_list(a->depths, "depth", &a->depth_list, err));
    if (a->prompt_list.n + a->depth_list.n == 0) {
        return err_set(err, SMOE_USAGE, "--prompt 0 with --depth 0 leaves nothing to measure");
    }
    a->options.n_prompts = a->prompt_list.values;
    a->options.n_n_prompts = a->prompt_list.n;
    a->options.n_depths = a->depth_list.values;
    a->options.n_n_depths = a->depth_list.n;
    return SMOE_OK;
}

static smoe_status set_routing(struct bench_args *a, smoe_err *err)
{
    if (a->routing && a->replay) {
        return err_set(err, SMOE_USAGE, "--routing and --replay both say who chooses the experts; "
                       "give one of them");
    }
    if (a->routing) {
        TRY(args_parse_routing(a->routing, &a->options.law, err));
    }
    if (a->replay) {
        TRY(trace_read(a->replay, &a->replayed, err));
        a->options.replay = &a->replayed;
    }
    a->options.record = a->record ? &a->recorded : NULL;
    return SMOE_OK;
}

static smoe_status run(struct bench_args *a, smoe_err *err)
{
    smoe_status status;
    if (a->ring) {
        CHECK(args_parse_ring(a->ring, &a->options.engine.n_ring, &a->options.ring_fraction, err));
    }
    CHECK(args_parse_kv_type(a->kv_type, &a->options.engine.kv_type, err));
    CHECK(set_lists(a, err));
    CHECK(set_routing(a, err));
    if (!a->options.engine.isa) {
        a->options.engine.isa = getenv("SMOE_ISA");
    }
    stop_signals_catch();
    CHECK(a->shape ? bench_shape(a, err) : bench_model(a, err));
    if (a->record) {
        CHECK(trace_write(&a->recorded, a->record, err));
    }
out:
    if (a->temp_dir) {
        rmdir(a->temp_dir);
        mem_free(a->temp_dir);
    }
    trace_fini(&a->recorded);
    trace_fini(&a->replayed);
    return status;
}

static smoe_status parse_args(struct bench_args *a, int argc, char **argv, smoe_err *err)
{
    size_t n_pos;
    smoe_engine_params *e = &a->options.engine;
    const opt table[] = {
        {"shape", OPT_TEXT, &a->shape, 0, 0, "NAME",
         "random weights: smoe-tiny, qwen3-30b-a3b, qwen3-235b-a22b, qwen3-coder-480b-a35b", NULL},
        {"layers", OPT_U32, &a->n_layer, 1, 512, "N", "of the shape; default: all", NULL},
        {"experts", OPT_TEXT, &a->experts, 0, 0, "TYPE", "of the shape; default: q4_K", NULL},
        {"scout", OPT_TEXT, &a->scout, 0, 0, "TYPE", "of the shape; default: q8_0", NULL},
        {"dir", OPT_TEXT, &a->dir, 0, 0, "DIR",
         "keep the shape's files, use those that are there; default: a temporary one", NULL},
        {"prompt", OPT_TEXT, &a->prompts, 0, 0, "N,N", "tokens to prefill; 0 = no such row (512)",
         NULL},
        {"depth", OPT_TEXT, &a->depths, 0, 0, "N,N",
         "context before decoding; 0 = no such row (512)", NULL},
        {"gen", OPT_U32, &a->options.n_gen, 1, 1e6, "N", "tokens to decode (64)", NULL},
        {"repeat", OPT_U32, &a->options.n_repeat, 1, BENCH_MAX_REPEAT, "N",
         "runs of each row; the median is shown (3)", NULL},
        {"threads", OPT_U32, &e->n_threads, 1, 1024, "N", "default: every core allowed", NULL},
        {"isa", OPT_TEXT, &e->isa, 0, 0, "NAME", "kernel set; default: SMOE_ISA or the best", NULL},
        {"ring", OPT_TEXT, &a->ring, 0, 0, "N",
         "expert slots, or a part of all such as 0.25 or 25%; 0 = what fits", NULL},
        {"routing", OPT_TEXT, &a->routing, 0, 0, "LAW",
         "who chooses the experts: model (default), uniform or sticky", NULL},
        {"replay", OPT_TEXT, &a->replay, 0, 0, "FILE", "the experts of a recorded trace", NULL},
        {"record", OPT_TEXT, &a->record, 0, 0, "FILE",
         "write which experts the last run of each row chose", NULL},
        {"ctx", OPT_U32, &e->n_ctx, 1, 1e9, "N", "default: what the rows need", NULL},
        {"mem-limit", OPT_SIZE, &e->mem_limit_bytes, 0, 0, "SIZE", "memory of the engine", NULL},
        {"kv-type", OPT_TEXT, &a->kv_type, 0, 0, "TYPE",
         "KV cache: f16 (default), f32 or q8_0", NULL},
        {"json", OPT_FLAG, &a->json, 0, 0, NULL, "one object per row", NULL},
        {"help", OPT_FLAG, &a->help, 0, 0, NULL, "this text", NULL},
        {NULL, OPT_FLAG, NULL, 0, 0, NULL, NULL, NULL},
    };
    TRY(opts_parse(table, argc, argv, 1, &a->model, 1, &n_pos, err));
    if (a->help) {
        char text[4096];
        opts_help(table, text, sizeof text);
        printf("usage: smoe bench [MODEL] [flags]\n"
               "       smoe bench --shape NAME [flags]\n"
               "       smoe bench io       the drive alone\n"
               "       smoe bench policy   what rings of several sizes and policies would hit\n"
               "\n%s", text);
    }
    return SMOE_OK;
}

int cmd_bench(int argc, char **argv)
{
    struct bench_args a = {
        .prompts = "512", .depths = "512", .options = {.n_gen = 64, .n_repeat = 3}};
    smoe_err err = {0};
    if (argc > 1 && strcmp(argv[1], "io") == 0) {
        return cmd_bench_io(argc - 1, argv + 1);
    }
    if (argc > 1 && strcmp(argv[1], "policy") == 0) {
        return cmd_bench_policy(argc - 1, argv + 1);
    }
    if (parse_args(&a, argc, argv, &err) != SMOE_OK) {
        return app_fail("bench", &err);
    }
    if (a.help) {
        return 0;
    }
    return run(&a, &err) == SMOE_OK ? 0 : app_fail("bench", &err);
}
