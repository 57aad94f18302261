/* cmd_bench_io.c: `smoe bench io`: what the drive delivers, alone, in each way of reading. */
#include <stdio.h>

#include "app/app.h"
#include "app/progress.h"
#include "base/mem.h"
#include "base/opts.h"
#include "bench/io_bench.h"
#include "formats/vault.h"
#include "json/json_write.h"

enum { MAX_ROW_BYTES = 4096 };

static const char *const WAYS[IO_BENCH_N_WAYS] = {"direct io_uring", "direct threads",
                                                  "buffered io_uring", "buffered threads"};
static const char *const KEYS[IO_BENCH_N_WAYS] = {"direct_io_uring", "direct_threads",
                                                  "buffered_io_uring", "buffered_threads"};

struct io_args {
    const char *model, *dir;
    uint64_t size_bytes;
    uint32_t n_repeat, trial_ms;
    bool json, help, dir_seen, size_seen;
    uint32_t record_bytes;
    bool has_head;
    progress bar;
};

static void print_json(const struct io_args *a, const io_bench_row *row)
{
    buf line;
    json_writer w;
    smoe_err err;
    buf_init(&line, MAX_ROW_BYTES);
    jw_init(&w, &line);
    jw_begin_object(&w);
    jw_key(&w, "order");
    jw_cstr(&w, row->in_order ? "in order" : "random");
    jw_key(&w, "depth");
    jw_uint(&w, row->depth);
    jw_key(&w, "record_bytes");
    jw_uint(&w, a->record_bytes);
    for (int way = 0; way < IO_BENCH_N_WAYS; way++) {
        jw_key(&w, KEYS[way]);
        jw_begin_object(&w);
        jw_key(&w, "gb_s");
        jw_number(&w, row->bytes_s[way] / 1e9);
        jw_key(&w, "cpu_s_per_gb");
        jw_number(&w, row->cpu_s_per_gb[way]);
        jw_end_object(&w);
    }
    jw_end_object(&w);
    if (jw_finish(&w, &err) == SMOE_OK) {
        puts(line.data);
    } else {
        fprintf(stderr, "smoe bench io: %s\n", err.text);
    }
    buf_fini(&line);
}

static void print_head(const struct io_args *a)
{
    printf("reads of %u bytes: GB/s, and processor seconds per GB\n\n%-9s %9s", a->record_bytes, "",
           "at a time");
    for (int way = 0; way < IO_BENCH_N_WAYS; way++) {
        printf("  %17s", WAYS[way]);
    }
    printf("\n");
}

static void print_table_row(const io_bench_row *row)
{
    printf("%-9s %9u", row->in_order ? "in order" : "random", row->depth);
    for (int way = 0; way < IO_BENCH_N_WAYS; way++) {
        if (row->bytes_s[way] > 0) {
            printf("  %8.2f %8.3f", row->bytes_s[way] / 1e9, row->cpu_s_per_gb[way]);
        } else {
            printf("  %17s", "not measured");
        }
    }
    printf("\n");
}

static void on_row(void *ctx, const io_bench_row *row)
{
    struct io_args *a = ctx;
    if (a->json) {
        print_json(a, row);
    } else {
        if (!a->has_head) {
            print_head(a);
        }
        a->has_head = true;
        print_table_row(row);
    }
    fflush(stdout);
}

static void on_progress(void *ctx, uint64_t n_done_bytes, uint64_t n_bytes)
{
    progress_update(&((struct io_args *)ctx)->bar, n_done_bytes, n_bytes);
}

static bool is_cancelled(void *ctx)
{
    (void)ctx;
    return stop_signal_seen();
}

static smoe_status open_vault(struct io_args *a, io_bench_file *b, smoe_err *err)
{
    smoe_status status;
    char *vault_path = NULL, *scout_path = NULL;
    vault v = {.st = {.file = FILE_CLOSED}};
    if (a->dir_seen || a->size_seen) {
        return err_set(err, SMOE_USAGE,
                       "--%s is for a file made for the purpose; a model has its own records",
                       a->dir_seen ? "dir" : "size");
    }
    CHECK(app_find_model(a->model, &vault_path, &scout_path, err));
    CHECK(vault_open(&v, vault_path, err));
    CHECK(io_bench_open(b, vault_path, v.record_offset, v.n_layer * v.n_expert,
                        (uint32_t)v.record_bytes, err));
out:
    vault_close(&v);
    mem_free(vault_path);
    mem_free(scout_path);
    return status;
}

static smoe_status run(struct io_args *a, smoe_err *err)
{
    io_bench_file b;
    const io_bench_events events = {a, on_progress, on_row, is_cancelled};
    smoe_status status;
    stop_signals_catch();
    if (a->model) {
        status = open_vault(a, &b, err);
    } else {
        progress_begin(&a->bar, "written");
        status = io_bench_make(&b, a->dir, a->size_bytes, IO_BENCH_RECORD_BYTES, &events, err);
        progress_end(&a->bar);
    }
    if (status != SMOE_OK) {
        return status;
    }
    a->record_bytes = b.record_bytes;
    status = io_bench_run(&b, a->trial_ms * UINT64_C(1000000), a->n_repeat, &events, err);
    io_bench_close(&b);
    return status;
}

static smoe_status parse_args(struct io_args *a, int argc, char **argv, smoe_err *err)
{
    size_t n_pos;
    const opt table[] = {
        {"dir", OPT_TEXT, &a->dir, 0, 0, "DIR", "where to make a file to read (here)",
         &a->dir_seen},
        {"size", OPT_SIZE, &a->size_bytes, 0, 0, "SIZE", "of that file (2G)", &a->size_seen},
        {"trial-ms", OPT_U32, &a->trial_ms, 1, 1e5, "N", "of each measurement (250)", NULL},
        {"repeat", OPT_U32, &a->n_repeat, 1, IO_BENCH_MAX_REPEAT, "N",
         "of each measurement, in turns; medians are shown (1)", NULL},
        {"json", OPT_FLAG, &a->json, 0, 0, NULL, "one object per row", NULL},
        {"help", OPT_FLAG, &a->help, 0, 0, NULL, "this text", NULL},
        {NULL, OPT_FLAG, NULL, 0, 0, NULL, NULL, NULL},
    };
    TRY(opts_parse(table, argc, argv, 1, &a->model, 1, &n_pos, err));
    if (a->help) {
        char text[4096];
        opts_help(table, text, sizeof text);
        printf("usage: smoe bench io [MODEL] [flags]\n\n"
               "Reads the records of MODEL's vault, or those of a file that it makes and "
               "removes.\n\n%s", text);
    }
    if (!a->help && a->size_bytes == 0) {
        return err_set(err, SMOE_USAGE, "--size 0 leaves nothing to read");
    }
    return SMOE_OK;
}

int cmd_bench_io(int argc, char **argv)
{
    struct io_args a = {.dir = ".", .size_bytes = UINT64_C(2) << 30, .n_repeat = 1,
                        .trial_ms = 250};
    smoe_err err = {0};
    smoe_status status = parse_args(&a, argc, argv, &err);
    if (status == SMOE_OK && !a.help) {
        status = run(&a, &err);
    }
    return status == SMOE_OK ? 0 : app_fail("bench io", &err);
}
