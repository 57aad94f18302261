/* cmd_shatter.c: `smoe shatter`: a checkpoint directory -> a scout and a vault. */
#include <stdio.h>
#include <string.h>

#include "app/app.h"
#include "app/args.h"
#include "app/progress.h"
#include "base/clock.h"
#include "base/opts.h"
#include "shatter/shatter.h"

enum { MAX_PLAN_BYTES = 1 << 20 };

struct shatter_args {
    const char *dir, *out_dir, *name, *experts, *scout;
    uint32_t n_threads;
    bool dry_run, help;
};

static smoe_status parse_args(struct shatter_args *a, int argc, char **argv, smoe_err *err)
{
    size_t n_pos;
    const opt table[] = {
        {.name = "o",
         .kind = OPT_TEXT,
         .dest = &a->out_dir,
         .arg = "DIR",
         .help = "where the two files go (default: the current directory)"},
        {.name = "name",
         .kind = OPT_TEXT,
         .dest = &a->name,
         .arg = "STEM",
         .help = "name of the two files (default: the checkpoint directory's)"},
        {.name = "experts",
         .kind = OPT_TEXT,
         .dest = &a->experts,
         .arg = "TYPE",
         .help = "type of the experts: " ARGS_WEIGHT_TYPES " (default: q4_K)"},
        {.name = "scout",
         .kind = OPT_TEXT,
         .dest = &a->scout,
         .arg = "TYPE",
         .help = "type of attention, embedding and head (default: q8_0)"},
        {.name = "threads",
         .kind = OPT_U32,
         .dest = &a->n_threads,
         .min = 1,
         .max = 1024,
         .arg = "N",
         .help = "threads (default: every core)"},
        {.name = "dry-run",
         .kind = OPT_FLAG,
         .dest = &a->dry_run,
         .help = "check everything, print the plan, write nothing"},
        {.name = "help", .kind = OPT_FLAG, .dest = &a->help, .help = "this text"},
        {.name = NULL},
    };
    TRY(opts_parse(table, argc, argv, 1, &a->dir, 1, &n_pos, err));
    if (a->help) {
        char text[2048];
        opts_help(table, text, sizeof text);
        printf("usage: smoe shatter CHECKPOINT_DIR [flags]\n\n%s", text);
        return SMOE_OK;
    }
    return n_pos == 1 ? SMOE_OK
                      : err_set(err, SMOE_USAGE,
                                "say which checkpoint directory to convert; --help "
                                "shows how");
}

static void on_progress(void *ctx, uint64_t done_bytes, uint64_t total_bytes)
{
    progress_update(ctx, done_bytes, total_bytes);
}

static void on_note(void *ctx, const char *text)
{
    (void)ctx;
    fprintf(stderr, "note: %s\n", text);
}

static bool is_cancelled(void *ctx)
{
    (void)ctx;
    return stop_signal_seen();
}

static void print_result(const shatter_plan *plan, double seconds)
{
    char a[32], b[32];
    shatter_summary s = shatter_plan_summary(plan);
    bool plain = s.stem_path[strspn(s.stem_path,
                                    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "0123456789._-+/")] == '\0';
    printf("wrote %s (%s) and %s (%s) in %.1f s\n", s.scout_path,
           shatter_size_text(s.scout_bytes, a), s.vault_path, shatter_size_text(s.vault_bytes, b),
           seconds);
    printf("go on with: smoe chat %s%s%s\n", plain ? "" : "\"", s.stem_path, plain ? "" : "\"");
}

static smoe_status convert(shatter_plan *plan, smoe_err *err)
{
    progress bar;
    uint64_t start_ns = clock_ns();
    shatter_events events = {&bar, on_progress, on_note, is_cancelled};
    stop_signals_catch();
    progress_begin(&bar, "converted");
    smoe_status status = shatter_convert(plan, &events, err);
    progress_end(&bar);
    if (status == SMOE_OK) {
        print_result(plan, (double)(clock_ns() - start_ns) / 1e9);
    }
    return status;
}

static smoe_status run(const struct shatter_args *a, smoe_err *err)
{
    smoe_status status;
    shatter_plan *plan = NULL;
    buf text;
    shatter_events events = {.note = on_note};
    shatter_options options = {.checkpoint_dir = a->dir,
                               .out_dir = a->out_dir,
                               .stem = a->name,
                               .experts = DTYPE_Q4_K,
                               .scout = DTYPE_Q8_0,
                               .n_threads = a->n_threads};
    buf_init(&text, MAX_PLAN_BYTES);
    CHECK(args_parse_weight_type(a->experts, "experts", &options.experts, err));
    CHECK(args_parse_weight_type(a->scout, "scout", &options.scout, err));
    CHECK(shatter_plan_new(&options, &events, &plan, err));
    CHECK(shatter_plan_describe(plan, &text, err));
    fputs(text.data, stdout);
    fflush(stdout);
    if (a->dry_run) {
        printf("\ndry run: all tensors are there and fit; nothing was written\n");
    } else {
        CHECK(convert(plan, err));
    }
out:
    buf_fini(&text);
    shatter_plan_free(plan);
    return status;
}

int cmd_shatter(int argc, char **argv)
{
    struct shatter_args a = {0};
    smoe_err err;
    if (parse_args(&a, argc, argv, &err) != SMOE_OK) {
        return app_fail("shatter", &err);
    }
    if (a.help) {
        return 0;
    }
    return run(&a, &err) == SMOE_OK ? 0 : app_fail("shatter", &err);
}
