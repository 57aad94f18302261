/* cmd_plan.c: `smoe plan`: what a model would need here and how fast it would be, before anyone
 * downloads it. Measures this machine; the model's files need not exist. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "app/bench_args.h"
#include "app/progress.h"
#include "base/cpu.h"
#include "base/mem.h"
#include "base/opts.h"
#include "bench/drive.h"
#include "bench/forecast.h"
#include "bench/limits.h"
#include "bench/shape.h"
#include "bench/sizes.h"
#include "json/json_write.h"
#include "shatter/shatter.h"

enum {
    MAX_TARGETS = 8,
    MAX_CONFIG_BYTES = 16 << 20,
    MAX_ROW_BYTES = 4096,
    N_PROMPT = 512,
    N_REPEAT = 3,
    NAME_BYTES = 64,
    CELL_BYTES = 64,
    LEAST_DRIVE_BYTES = 16 << 20,
};

/* One model: a column of the table. */
struct target {
    char name[NAME_BYTES];
    model_config config;
    model_work work;
    uint64_t download_bytes; /* 0: the files are here already */
    uint64_t vault_bytes, scout_bytes;
    forecast forecast;
};

struct plan_args {
    const char *model, *dir, *experts, *scout;
    uint64_t mem_bytes, drive_bytes;
    uint32_t n_ctx;
    bool json, help, dir_seen;
    dtype experts_type, scout_type;
    struct target targets[MAX_TARGETS];
    size_t n_targets;
    char *vault_path; /* of files that are here: their records are read, nothing is written */
    machine machine;
    io_probe_result way;
    double int_ops_s, float_ops_s;
    progress bar;
};

/* ---- the models ---- */

static smoe_status add_config(struct plan_args *a, slice text, const char *name, const char *where,
                              smoe_err *err)
{
    struct target *t = &a->targets[a->n_targets];
    model_sizes sizes;
    snprintf(t->name, sizeof t->name, "%s", name);
    TRY(model_config_parse(text, where, &t->config, err));
    TRY(model_sizes_of(&t->config, name, a->experts_type, a->scout_type, &sizes, err));
    t->work = model_sizes_work(&t->config, &sizes);
    t->download_bytes = 2 * sizes.n_params;
    t->vault_bytes = sizes.vault_bytes;
    t->scout_bytes = sizes.scout_bytes;
    a->n_targets++;
    return SMOE_OK;
}

static smoe_status add_shape(struct plan_args *a, const model_shape *shape, smoe_err *err)
{
    buf text;
    buf_init(&text, MAX_CONFIG_BYTES);
    smoe_status status = model_shape_config(shape, &text, err);
    if (status == SMOE_OK) {
        status = add_config(a, buf_slice(&text), shape->name, shape->name, err);
    }
    buf_fini(&text);
    return status;
}

/* "dir/Name", "dir/Name/" or "dir/Name/config.json" -> Name */
static void name_of(const char *path, char name[NAME_BYTES])
{
    size_t len = strlen(path), tail = strlen("config.json");
    if (len > tail && strcmp(path + len - tail, "config.json") == 0) {
        len -= tail;
    }
    while (len > 1 && path[len - 1] == '/') {
        len--;
    }
    size_t begin = len;
    while (begin > 0 && path[begin - 1] != '/') {
        begin--;
    }
    snprintf(name, NAME_BYTES, "%.*s", (int)(len - begin), path + begin);
}

static smoe_status add_file(struct plan_args *a, const char *path, smoe_err *err)
{
    char name[NAME_BYTES];
    buf text;
    buf_init(&text, MAX_CONFIG_BYTES);
    name_of(path, name);
    smoe_status status = file_slurp(path, MAX_CONFIG_BYTES, &text, err);
    if (status == SMOE_OK) {
        status = add_config(a, buf_slice(&text), name, path, err);
    }
    buf_fini(&text);
    return status;
}

static smoe_status add_pair(struct plan_args *a, smoe_err *err)
{
    smoe_status status;
    struct target *t = &a->targets[0];
    char *scout_path = NULL;
    scout s = {.st = {.file = FILE_CLOSED}};
    const char *given = a->experts ? "experts" : a->scout ? "scout" : a->dir_seen ? "dir" : NULL;
    CHECK(app_find_model(a->model, &a->vault_path, &scout_path, err));
    if (given) {
        CHECK(err_set(err, SMOE_USAGE, "--%s is for a model that is not converted yet; the files "
                      "of %.200s have theirs", given, a->model));
    }
    CHECK(scout_open(&s, scout_path, err));
    CHECK(model_work_of(a->vault_path, scout_path, &t->work, err));
    t->config = s.config;
    t->scout_bytes = s.st.file.size_bytes;
    t->vault_bytes = (uint64_t)model_work_records(&t->work) * t->work.record_bytes;
    name_of(a->model, t->name);
    a->n_targets = 1;
out:
    scout_close(&s);
    mem_free(scout_path);
    return status;
}

static smoe_status add_path(struct plan_args *a, smoe_err *err)
{
    size_t len = strlen(a->model);
    if (len > 5 && strcmp(a->model + len - 5, ".json") == 0) {
        return add_file(a, a->model, err);
    }
    char *config = file_is_dir(a->model) ? path_join(a->model, "config.json") : NULL;
    bool is_checkpoint = config && file_exists(config);
    smoe_status status = is_checkpoint ? add_file(a, config, err) : add_pair(a, err);
    mem_free(config);
    return status;
}

/* Every published shape, when none is named; smoe-tiny ships and needs no plan. */
static smoe_status add_targets(struct plan_args *a, smoe_err *err)
{
    const model_shape *shape = a->model ? model_shape_find(a->model) : NULL;
    if (shape) {
        return add_shape(a, shape, err);
    }
    if (a->model) {
        smoe_status status = add_path(a, err);
        if (status == SMOE_IO && !file_exists(a->model)) {
            return err_set(err, SMOE_USAGE,
                           "\"%.200s\" is neither the name of a shape nor a model that is here; "
                           "smoe plan alone shows the shapes it knows", a->model);
        }
        return status;
    }
    for (size_t i = 0; (shape = model_shape_at(i)); i++) {
        if (shape->n_ctx_train > APP_DEFAULT_CTX && a->n_targets < MAX_TARGETS) {
            TRY(add_shape(a, shape, err));
        }
    }
    return SMOE_OK;
}

/* ---- the machine ---- */

static bool is_cancelled(void *ctx)
{
    (void)ctx;
    return stop_signal_seen();
}

static void on_progress(void *ctx, uint64_t n_done_bytes, uint64_t n_bytes)
{
    progress_update(ctx, n_done_bytes, n_bytes);
}

static smoe_status open_drive(struct plan_args *a, drive *d, smoe_err *err)
{
    const io_bench_events events = {&a->bar, on_progress, NULL, is_cancelled};
    uint64_t record_bytes = UINT64_MAX;
    if (a->vault_path) {
        return drive_open_vault(d, a->vault_path, err);
    }
    for (size_t i = 0; i < a->n_targets; i++) {
        uint64_t n = a->targets[i].work.record_bytes;
        record_bytes = n < record_bytes ? n : record_bytes;
    }
    progress_begin(&a->bar, "written");
    smoe_status status =
        drive_open_dir(d, a->dir, a->drive_bytes, (uint32_t)record_bytes, &events, err);
    progress_end(&a->bar);
    return status;
}

/* The best of a few: what others do on the machine only ever takes away. */
static smoe_status measure(struct plan_args *a, drive *d, limits *l, smoe_err *err)
{
    machine *m = &a->machine;
    for (int i = 0; i < N_REPEAT; i++) {
        double bytes_s;
        if (stop_signal_seen()) {
            return err_set(err, SMOE_CANCELLED, "interrupted");
        }
        limit_rates now = limits_measure(l);
        TRY(drive_measure(d, &bytes_s, err));
        m->drive_bytes_s = bytes_s > m->drive_bytes_s ? bytes_s : m->drive_bytes_s;
        m->dram_bytes_s = now.read_bytes_s > m->dram_bytes_s ? now.read_bytes_s : m->dram_bytes_s;
        a->int_ops_s = now.int_ops_s > a->int_ops_s ? now.int_ops_s : a->int_ops_s;
        a->float_ops_s = now.float_ops_s > a->float_ops_s ? now.float_ops_s : a->float_ops_s;
    }
    a->way = d->way;
    return SMOE_OK;
}

static smoe_status know_machine(struct plan_args *a, smoe_err *err)
{
    smoe_status status;
    drive d = DRIVE_CLOSED;
    limits *l = NULL;
    a->machine.n_threads = cpu_n_cores();
    a->machine.available_bytes = mem_available_bytes();
    CHECK(open_drive(a, &d, err));
    CHECK(limits_new(getenv("SMOE_ISA"), a->machine.n_threads, &l, err));
    CHECK(measure(a, &d, l, err));
out:
    drive_close(&d);
    limits_free(l);
    return status;
}

static smoe_status make_forecasts(struct plan_args *a, smoe_err *err)
{
    for (size_t i = 0; i < a->n_targets; i++) {
        struct target *t = &a->targets[i];
        machine m = a->machine;
        m.ops_s = dtype_get(t->work.experts)->is_quantized ? a->int_ops_s : a->float_ops_s;
        uint32_t n_ctx = app_context(a->n_ctx, t->config.n_ctx_train);
        const forecast_question q = {
            .config = &t->config, .work = &t->work, .scout_bytes = t->scout_bytes,
            .mem_limit_bytes = a->mem_bytes, .n_ctx = n_ctx,
            .n_prompt = n_ctx < N_PROMPT ? n_ctx : N_PROMPT,
            .n_depth = n_ctx < N_PROMPT ? n_ctx : N_PROMPT};
        TRY(forecast_make(&q, &m, &t->forecast, err));
    }
    return SMOE_OK;
}

/* ---- output ---- */

static void put_text(json_writer *w, const char *key, const char *value)
{
    jw_key(w, key);
    jw_cstr(w, value);
}

static void put_count(json_writer *w, const char *key, uint64_t value)
{
    jw_key(w, key);
    jw_uint(w, value);
}

/* 0 stands for what is not known. */
static void put_number(json_writer *w, const char *key, double value)
{
    jw_key(w, key);
    if (value > 0) {
        jw_number(w, value);
    } else {
        jw_null(w);
    }
}

static void write_target(const struct plan_args *a, const struct target *t, json_writer *w)
{
    const forecast *f = &t->forecast;
    jw_begin_object(w);
    put_text(w, "model", t->name);
    put_count(w, "download_bytes", t->download_bytes);
    put_count(w, "vault_bytes", t->vault_bytes);
    put_count(w, "scout_bytes", t->scout_bytes);
    put_count(w, "record_bytes", t->work.record_bytes);
    put_count(w, "limit_bytes", f->memory.budget.limit_bytes);
    put_count(w, "needed_bytes", f->needed_bytes);
    jw_key(w, "fits");
    jw_bool(w, f->fits);
    if (f->fits) {
        put_count(w, "kv_bytes", f->memory.kv_bytes);
        put_count(w, "scratch_bytes", f->memory.scratch_bytes);
        put_count(w, "ring", f->memory.budget.n_ring);
        put_count(w, "records", model_work_records(&t->work));
        put_number(w, "hit_rate", f->hit_rate);
        jw_key(w, "bytes_read_per_token");
        jw_number(w, f->read_bytes_per_token);
        put_number(w, "decode_tok_s", f->decode_tok_s);
        put_text(w, "decode_bound", f->decode_bound);
        put_number(w, "ttft_ms", f->ttft_seconds * 1e3);
        put_text(w, "prompt_bound", f->prompt_bound);
    }
    put_number(w, "drive_gb_s", a->machine.drive_bytes_s / 1e9);
    put_number(w, "dram_gb_s", a->machine.dram_bytes_s / 1e9);
    put_number(w, "int_gop_s", a->int_ops_s / 1e9);
    jw_end_object(w);
}

static smoe_status print_json(const struct plan_args *a, smoe_err *err)
{
    smoe_status status = SMOE_OK;
    for (size_t i = 0; i < a->n_targets && status == SMOE_OK; i++) {
        buf line;
        json_writer w;
        buf_init(&line, MAX_ROW_BYTES);
        jw_init(&w, &line);
        write_target(a, &a->targets[i], &w);
        status = jw_finish(&w, err);
        if (status == SMOE_OK) {
            puts(line.data);
        }
        buf_fini(&line);
    }
    return status;
}

static void print_machine(const struct plan_args *a)
{
    const machine *m = &a->machine;
    char free_text[32];
    printf("this machine  %u thread%s: %.1f GB/s from memory, %.0f GOP/s; %s of memory to give\n",
           m->n_threads, m->n_threads == 1 ? "" : "s", m->dram_bytes_s / 1e9, a->int_ops_s / 1e9,
           shatter_size_text(m->available_bytes, free_text));
    if (m->drive_bytes_s > 0) {
        printf("its drive     %.2f GB/s (%s, %s, %u at a time) %s %s\n\n", m->drive_bytes_s / 1e9,
               aio_kind_name(a->way.mode.kind), a->way.mode.direct ? "direct" : "buffered",
               a->way.mode.depth, a->vault_path ? "from" : "in",
               a->vault_path ? a->vault_path : a->dir);
    } else {
        printf("its drive     not measurable: %s is kept in memory by its file system\n\n",
               a->vault_path ? a->vault_path : a->dir);
    }
}

typedef void cell(const struct target *t, char text[CELL_BYTES]);

static void print_line(const struct plan_args *a, const char *head, cell *write)
{
    printf("%-26s", head);
    for (size_t i = 0; i < a->n_targets; i++) {
        char text[CELL_BYTES];
        write(&a->targets[i], text);
        printf(" %22s", text);
    }
    printf("\n");
}

static void size_cell(uint64_t n_bytes, char text[CELL_BYTES])
{
    char size[32];
    snprintf(text, CELL_BYTES, "%s", n_bytes ? shatter_size_text(n_bytes, size) : "-");
}

static void cell_name(const struct target *t, char text[CELL_BYTES])
{
    snprintf(text, CELL_BYTES, "%.22s", t->name);
}

static void cell_download(const struct target *t, char text[CELL_BYTES])
{
    size_cell(t->download_bytes, text);
}

static void cell_vault(const struct target *t, char text[CELL_BYTES])
{
    size_cell(t->vault_bytes, text);
}

static void cell_scout(const struct target *t, char text[CELL_BYTES])
{
    size_cell(t->scout_bytes, text);
}

static void cell_kv(const struct target *t, char text[CELL_BYTES])
{
    size_cell(t->forecast.memory.kv_bytes, text);
}

static void cell_scratch(const struct target *t, char text[CELL_BYTES])
{
    size_cell(t->forecast.memory.scratch_bytes, text);
}

static uint64_t ring_bytes(const struct target *t)
{
    return t->forecast.fits ? t->forecast.memory.budget.n_ring * t->work.record_bytes : 0;
}

static void cell_ring(const struct target *t, char text[CELL_BYTES])
{
    size_cell(ring_bytes(t), text);
}

static void cell_part(const struct target *t, char text[CELL_BYTES])
{
    uint32_t n = t->forecast.memory.budget.n_ring;
    snprintf(text, CELL_BYTES, t->forecast.fits ? "%.0f %%" : "-",
             100.0 * n / model_work_records(&t->work));
}

static void cell_needed(const struct target *t, char text[CELL_BYTES])
{
    size_cell(t->forecast.needed_bytes, text);
}

static void cell_hits(const struct target *t, char text[CELL_BYTES])
{
    snprintf(text, CELL_BYTES, t->forecast.fits ? "%.0f %%" : "-", 100 * t->forecast.hit_rate);
}

static void cell_tokens(const struct target *t, char text[CELL_BYTES])
{
    double rate = t->forecast.decode_tok_s;
    snprintf(text, CELL_BYTES, rate > 0 ? "%.*f" : "-", rate < 10 ? 2 : 1, rate);
}

static void cell_first(const struct target *t, char text[CELL_BYTES])
{
    double seconds = t->forecast.ttft_seconds;
    snprintf(text, CELL_BYTES, seconds > 0 ? "%.*f s" : "-", seconds < 10 ? 1 : 0, seconds);
}

static void cell_bounds(const struct target *t, char text[CELL_BYTES])
{
    snprintf(text, CELL_BYTES, t->forecast.fits ? "%s, %s" : "too little memory",
             t->forecast.decode_bound, t->forecast.prompt_bound);
}

static void print_table(const struct plan_args *a)
{
    const model_work *w = &a->targets[0].work; /* types are the same in every column */
    char on_disk[CELL_BYTES], dense[CELL_BYTES];
    snprintf(on_disk, sizeof on_disk, "vault, %s, on disk", dtype_get(w->experts)->name);
    snprintf(dense, sizeof dense, "memory: scout, %s", dtype_get(w->scout)->name);
    print_machine(a);
    print_line(a, "", cell_name);
    print_line(a, "download, bf16", cell_download);
    print_line(a, on_disk, cell_vault);
    print_line(a, dense, cell_scout);
    print_line(a, "        KV cache", cell_kv);
    print_line(a, "        scratch", cell_scratch);
    print_line(a, "        ring", cell_ring);
    print_line(a, "        at least, in all", cell_needed);
    print_line(a, "ring, of all experts", cell_part);
    print_line(a, "experts found in it", cell_hits);
    print_line(a, "tokens/s", cell_tokens);
    print_line(a, "first token after 512", cell_first);
    print_line(a, "limits: token, prompt", cell_bounds);
    printf("\n"
           "An estimate. Sizes are exact. Speeds follow from the rates above, taken just now, and\n"
           "from hits that such models were seen to have (docs/performance.md); yours depend on\n"
           "what you ask.\n");
}

static smoe_status run(struct plan_args *a, smoe_err *err)
{
    a->experts_type = DTYPE_Q4_K;
    a->scout_type = DTYPE_Q8_0;
    TRY(args_parse_type(a->experts, "experts", &a->experts_type, err));
    TRY(args_parse_type(a->scout, "scout", &a->scout_type, err));
    TRY(add_targets(a, err));
    for (size_t i = 0; i < a->n_targets; i++) {
        TRY(forecast_check_ctx(&a->targets[i].config, a->n_ctx, err));
    }
    stop_signals_catch();
    TRY(know_machine(a, err));
    TRY(make_forecasts(a, err));
    if (a->json) {
        return print_json(a, err);
    }
    print_table(a);
    return SMOE_OK;
}

static smoe_status parse_args(struct plan_args *a, int argc, char **argv, smoe_err *err)
{
    size_t n_pos;
    const opt table[] = {
        {"mem", OPT_SIZE, &a->mem_bytes, 0, 0, "SIZE",
         "memory for everything; default: what the machine offers", NULL},
        {"ctx", OPT_U32, &a->n_ctx, 1, 1e9, "N", "context in tokens (4096)", NULL},
        {"experts", OPT_TEXT, &a->experts, 0, 0, "TYPE", "of the vault (q4_K)", NULL},
        {"scout", OPT_TEXT, &a->scout, 0, 0, "TYPE", "of the scout (q8_0)", NULL},
        {"dir", OPT_TEXT, &a->dir, 0, 0, "DIR",
         "where the vault would lie: its drive is measured (here)", &a->dir_seen},
        {"size", OPT_SIZE, &a->drive_bytes, 0, 0, "SIZE",
         "of the file that is written there, read, and removed (512M)", NULL},
        {"json", OPT_FLAG, &a->json, 0, 0, NULL, "one object per model", NULL},
        {"help", OPT_FLAG, &a->help, 0, 0, NULL, "this text", NULL},
        {NULL, OPT_FLAG, NULL, 0, 0, NULL, NULL, NULL},
    };
    TRY(opts_parse(table, argc, argv, 1, &a->model, 1, &n_pos, err));
    if (a->help) {
        char text[4096];
        opts_help(table, text, sizeof text);
        printf("usage: smoe plan [MODEL] [flags]\n\n"
               "MODEL: qwen3-30b-a3b, qwen3-235b-a22b, qwen3-coder-480b-a35b, smoe-tiny; a\n"
               "checkpoint directory or its config.json; a converted model. Default: the first "
               "three.\n\n%s", text);
    }
    if (!a->help && a->drive_bytes < LEAST_DRIVE_BYTES) {
        return err_set(err, SMOE_USAGE, "--size is at least 16M: less says nothing of a drive");
    }
    return SMOE_OK;
}

int cmd_plan(int argc, char **argv)
{
    static struct plan_args a = {.dir = ".", .drive_bytes = UINT64_C(512) << 20};
    smoe_err err = {0};
    smoe_status status = parse_args(&a, argc, argv, &err);
    if (status == SMOE_OK && !a.help) {
        status = run(&a, &err);
    }
    mem_free(a.vault_path);
    return status == SMOE_OK ? 0 : app_fail("plan", &err);
}
