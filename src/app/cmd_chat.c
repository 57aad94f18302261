/* cmd_chat.c: `smoe chat`: finds the model, starts smoe-engine over it, and hands both to chat/. */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/app.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/opts.h"
#include "chat/chat.h"
#include "formats/vault.h"

enum {
    MAX_ENGINE_ARGS = 48,
    NUMBER_BYTES = 32,
    MAX_NUMBERS = 12
};

struct chat_flags {
    const char *system_text, *prompt, *file_path, *mem_limit;
    float temperature, top_p, rep_penalty, min_p, presence_penalty, frequency_penalty;
    uint32_t top_k, n_ctx, n_threads, n_ring, max_tokens;
    uint64_t seed;
    bool temperature_seen, top_p_seen, rep_penalty_seen, top_k_seen, seed_seen, threads_seen,
        ring_seen, min_p_seen, presence_penalty_seen, frequency_penalty_seen;
    bool think, no_think, resume, json, no_save, no_prewarm, stats, verbose, help;
};

/* The engine's command line. Texts are borrowed except the numbers, which live here. */
struct engine_args {
    const char *argv[MAX_ENGINE_ARGS];
    size_t n;
    char numbers[MAX_NUMBERS][NUMBER_BYTES];
    size_t n_numbers;
};

static void add(struct engine_args *a, const char *flag, const char *value)
{
    a->argv[a->n++] = flag;
    if (value != NULL) {
        a->argv[a->n++] = value;
    }
}

static void add_float(struct engine_args *a, const char *flag, float value)
{
    char *text = a->numbers[a->n_numbers++];
    snprintf(text, NUMBER_BYTES, "%.9g", (double)value);
    add(a, flag, text);
}

static void add_uint(struct engine_args *a, const char *flag, uint64_t value)
{
    char *text = a->numbers[a->n_numbers++];
    snprintf(text, NUMBER_BYTES, "%llu", (unsigned long long)value);
    add(a, flag, text);
}

/* Only what was given: the engine's own defaults hold for the rest. */
static void engine_args_make(struct engine_args *a, const struct chat_flags *f, const char *engine,
                             const char *vault_path, const char *scout_path)
{
    *a = (struct engine_args){0};
    add(a, engine, NULL);
    add(a, "--serve", NULL);
    add(a, "--vault", vault_path);
    add(a, "--scout", scout_path);
    add_uint(a, "--ctx", f->n_ctx);
    if (f->temperature_seen) {
        add_float(a, "--temperature", f->temperature);
    }
    if (f->top_p_seen) {
        add_float(a, "--top-p", f->top_p);
    }
    if (f->top_k_seen) {
        add_uint(a, "--top-k", f->top_k);
    }
    if (f->rep_penalty_seen) {
        add_float(a, "--rep-penalty", f->rep_penalty);
    }
    if (f->min_p_seen) {
        add_float(a, "--min-p", f->min_p);
    }
    if (f->presence_penalty_seen) {
        add_float(a, "--presence-penalty", f->presence_penalty);
    }
    if (f->frequency_penalty_seen) {
        add_float(a, "--frequency-penalty", f->frequency_penalty);
    }
    if (f->seed_seen) {
        add_uint(a, "--seed", f->seed);
    }
    if (f->threads_seen) {
        add_uint(a, "--threads", f->n_threads);
    }
    if (f->ring_seen) {
        add_uint(a, "--ring", f->n_ring);
    }
    if (f->mem_limit != NULL) {
        add(a, "--mem-limit", f->mem_limit);
    }
    if (f->no_prewarm) {
        add(a, "--no-prewarm", NULL);
    }
}

static smoe_status parse_flags(struct chat_flags *f, int argc, char **argv, const char **model,
                               smoe_err *err)
{
    const opt table[] = {
        {"system", OPT_TEXT, &f->system_text, 0, 0, "TEXT",
         "a system message before the conversation", NULL},
        {"prompt", OPT_TEXT, &f->prompt, 0, 0, "TEXT", "answer this and leave (also -p)", NULL},
        {"file", OPT_TEXT, &f->file_path, 0, 0, "PATH",
         "a text file that goes before the first message; - = the input", NULL},
        {"continue", OPT_FLAG, &f->resume, 0, 0, NULL, "go on with the newest conversation", NULL},
        {"no-save", OPT_FLAG, &f->no_save, 0, 0, NULL, "keep no file of this conversation", NULL},
        {"json", OPT_FLAG, &f->json, 0, 0, NULL, "print one JSON object per answer", NULL},
        {"think", OPT_FLAG, &f->think, 0, 0, NULL, "let the model reason before it answers", NULL},
        {"no-think", OPT_FLAG, &f->no_think, 0, 0, NULL, "do not let it", NULL},
        {"temperature", OPT_FLOAT, &f->temperature, 0, 100, "X",
         "0 = always the likeliest (default 0.6)", &f->temperature_seen},
        {"top-p", OPT_FLOAT, &f->top_p, 1e-6, 1, "X", "nucleus (default 0.95)", &f->top_p_seen},
        {"top-k", OPT_U32, &f->top_k, 1, 1024, "N", "candidates (default 50)", &f->top_k_seen},
        {"rep-penalty", OPT_FLOAT, &f->rep_penalty, 0.01, 100, "X",
         "against repetition (default 1.1; 1 = none)", &f->rep_penalty_seen},
        {"min-p", OPT_FLOAT, &f->min_p, 0, 1, "X",
         "least probability, as a share of the likeliest token's (default 0)", &f->min_p_seen},
        {"presence-penalty", OPT_FLOAT, &f->presence_penalty, -2, 2, "X",
         "against tokens that the answer has already (default 0)", &f->presence_penalty_seen},
        {"frequency-penalty", OPT_FLOAT, &f->frequency_penalty, -2, 2, "X",
         "the same, for each time (default 0)", &f->frequency_penalty_seen},
        {"seed", OPT_U64, &f->seed, 0, 0, "N", "of the sampler (default 1337)", &f->seed_seen},
        {"ctx", OPT_U32, &f->n_ctx, 1, 1e9, "N",
         "context in tokens (default: 4096, or the model's maximum)", NULL},
        {"max-tokens", OPT_U32, &f->max_tokens, 1, 1e9, "N",
         "per answer (default: what is left of the context)", NULL},
        {"threads", OPT_U32, &f->n_threads, 1, 1024, "N", "default: every core allowed",
         &f->threads_seen},
        {"ring", OPT_U32, &f->n_ring, 0, 4e9, "N", "expert slots; 0 = what fits (default)",
         &f->ring_seen},
        {"mem-limit", OPT_TEXT, &f->mem_limit, 0, 0, "SIZE",
         "memory for everything (default: what the machine offers)", NULL},
        {"no-prewarm", OPT_FLAG, &f->no_prewarm, 0, 0, NULL,
         "read nothing ahead while you type, keep no history of experts", NULL},
        {"stats", OPT_FLAG, &f->stats, 0, 0, NULL,
         "tokens and speed of each answer, on stderr, also when not on a terminal", NULL},
        {"verbose", OPT_FLAG, &f->verbose, 0, 0, NULL, "show the engine's messages", NULL},
        {"help", OPT_FLAG, &f->help, 0, 0, NULL, "this text", NULL},
        {NULL, OPT_FLAG, NULL, 0, 0, NULL, NULL, NULL},
    };
    size_t n_pos;
    uint64_t n_bytes;
    TRY(opts_parse(table, argc, argv, 1, model, 1, &n_pos, err));
    if (f->help) {
        char text[8192];
        opts_help(table, text, sizeof text);
        printf("usage: smoe chat [MODEL] [flags]\n\n"
               "MODEL is a stem, either of its files, or a directory with one model; without it,\n"
               "the model that ships. Input that is not a terminal is read line by line, and only\n"
               "the answers are printed.\n\n%s", text);
    }
    return f->mem_limit != NULL ? opts_parse_size(f->mem_limit, "mem-limit", &n_bytes, err)
                                : SMOE_OK;
}

/* The context, and the lineage, which the caller owns. */
static smoe_status look_at_scout(const char *scout_path, uint32_t *n_ctx, char **lineage,
                                 smoe_err *err)
{
    scout s;
    TRY(scout_open(&s, scout_path, err));
    *n_ctx = app_context(*n_ctx, s.config.n_ctx_train);
    *lineage = mem_strdup(s.lineage);
    scout_close(&s);
    return *lineage ? SMOE_OK : err_nomem(err, "the lineage", 33);
}

/* --think and --no-think exist where the checkpoint's template has the switch. */
static smoe_status choose_think(const struct chat_flags *f, const smoe_chat_format *format,
                                enum chat_think *think, smoe_err *err)
{
    *think = f->think ? CHAT_THINK_ON : f->no_think ? CHAT_THINK_OFF : CHAT_THINK_DEFAULT;
    if (f->think && f->no_think) {
        return err_set(err, SMOE_USAGE, "--think and --no-think exclude each other");
    }
    if (*think != CHAT_THINK_DEFAULT &&
        !smoe_template_uses(smoe_chat_format_template(format), "enable_thinking")) {
        return err_set(err, SMOE_USAGE,
                       "%s: the chat template of this model has no such switch (enable_thinking); "
                       "leave the flag out", f->think ? "--think" : "--no-think");
    }
    return SMOE_OK;
}

/* $XDG_STATE_HOME/smoe/chats, or ~/.local/state/smoe/chats; NULL when neither is known. Owned by
 * the caller. */
static char *state_dir(void)
{
    const char *base = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    bool has_base = base != NULL && *base == '/';
    if (!has_base && (home == NULL || *home != '/')) {
        return NULL;
    }
    return path_join(has_base ? base : home, has_base ? "smoe/chats" : ".local/state/smoe/chats");
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0';
}

/* Characters beyond ASCII reach the line editor only in a UTF-8 locale. Numbers stay in the C
 * locale. */
static void use_utf8(void)
{
    static const char *const fallbacks[] = {"C.UTF-8", "en_US.UTF-8"};
    setlocale(LC_CTYPE, "");
    for (size_t i = 0; i < 2 && strcmp(nl_langinfo(CODESET), "UTF-8") != 0; i++) {
        setlocale(LC_CTYPE, fallbacks[i]);
    }
}

static smoe_status chat(struct chat_flags *f, const char *model, int *ended_by, smoe_err *err)
{
    smoe_status status;
    char *vault_path = NULL, *scout_path = NULL, *engine = NULL, *title = NULL;
    char *lineage = NULL, *saves = NULL;
    enum chat_think think;
    smoe_chat_format *format = NULL;
    struct engine_args args;
    CHECK(app_find_model(model, &vault_path, &scout_path, err));
    CHECK(app_open_chat_format(scout_path, &format, err));
    CHECK(choose_think(f, format, &think, err));
    CHECK(look_at_scout(scout_path, &f->n_ctx, &lineage, err));
    /* What a script asks is its own business; what a person says is kept. */
    if (!f->no_save && (f->resume || (f->prompt == NULL && isatty(STDIN_FILENO)))) {
        saves = state_dir();
    }
    engine = app_engine_path();
    title = app_model_name(vault_path);
    if (engine == NULL || title == NULL) {
        CHECK(err_nomem(err, "the engine's path", 4096));
    }
    engine_args_make(&args, f, engine, vault_path, scout_path);
    const char *term = getenv("TERM");
    chat_options options = {
        .engine_argv = args.argv,
        .format = format,
        .title = title,
        .lineage = lineage,
        .system_text = f->system_text,
        .prompt = f->prompt,
        .file_path = f->file_path,
        .state_dir = saves,
        .resume = f->resume,
        .think = think,
        .json = f->json,
        .n_ctx = f->n_ctx,
        .max_tokens = f->max_tokens,
        .in_fd = STDIN_FILENO,
        .out_fd = STDOUT_FILENO,
        .err_fd = STDERR_FILENO,
        .dumb = term == NULL || *term == '\0' || strcmp(term, "dumb") == 0,
        .color = !is_set("NO_COLOR"),
        .stats = f->stats,
        .verbose = f->verbose,
    };
    CHECK(chat_run(&options, ended_by, err));
out:
    smoe_chat_format_free(format);
    mem_free(title);
    mem_free(lineage);
    mem_free(saves);
    mem_free(engine);
    mem_free(vault_path);
    mem_free(scout_path);
    return status;
}

int cmd_chat(int argc, char **argv)
{
    smoe_err err = {0};
    struct chat_flags flags = {0};
    const char *model = NULL;
    int ended_by = 0;
    use_utf8();
    static char prompt_flag[] = "--prompt"; /* -p is the one short flag */
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        argv[i] = strcmp(argv[i], "-p") == 0 ? prompt_flag : argv[i];
    }
    smoe_status status = parse_flags(&flags, argc, argv, &model, &err);
    if (status == SMOE_OK && !flags.help) {
        status = chat(&flags, model, &ended_by, &err);
    }
    if (status == SMOE_CANCELLED) {
        return 128 + ended_by;
    }
    return status == SMOE_OK ? 0 : app_fail("chat", &err);
}
