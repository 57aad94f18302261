/* cmd_eval.c: `smoe eval`: a model's logits, its perplexity on a text, its answers to a file of
 * questions. Runs the engine in this process: nothing here outlives one command. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/app.h"
#include "app/args.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/opts.h"
#include "json/json_read.h"
#include "json/json_write.h"
#include "smoe/engine.h"
#include "smoe/tokenizer.h"

enum { FILE_MAX_BYTES = 256 << 20, MAX_KINDS = 64, ANSWER_MAX_TOKENS = 256 };

struct eval {
    const char *model, *kv_type, *ids_text, *out_path, *text_path, *answers_path;
    smoe_engine_params params;
    uint32_t n_show;
    bool help;
    smoe_engine *engine;
    smoe_session *session;
    const smoe_engine_info *info;
    smoe_chat_format *format; /* NULL unless the task needs it */
};

/* Opens the engine, and tokenizer and template when with_format. */
static smoe_status open_model(struct eval *ev, bool with_format, smoe_err *err)
{
    smoe_status status;
    char *vault_path = NULL, *scout_path = NULL;
    const smoe_session_params session = {.seed = 1337};
    CHECK(app_find_model(ev->model, &vault_path, &scout_path, err));
    if (with_format) {
        CHECK(app_open_chat_format(scout_path, &ev->format, err));
    }
    ev->params.vault_path = vault_path;
    ev->params.scout_path = scout_path;
    ev->params.isa = getenv("SMOE_ISA");
    CHECK(smoe_engine_open(&ev->params, &ev->engine, err));
    ev->info = smoe_engine_get_info(ev->engine);
    CHECK(smoe_session_new(ev->engine, &session, &ev->session, err));
out:
    mem_free(vault_path);
    mem_free(scout_path);
    return status;
}

static void close_model(struct eval *ev)
{
    smoe_session_free(ev->session);
    smoe_engine_close(ev->engine);
    smoe_chat_format_free(ev->format);
}

/* ---- logits ---- */

struct logits_out {
    file_writer w;
    uint32_t n_vocab;
};

static smoe_status write_row(void *ctx, size_t position, const float *logits, smoe_err *err)
{
    struct logits_out *out = ctx;
    (void)position;
    return file_write(&out->w, logits, out->n_vocab * sizeof *logits, err);
}

static smoe_status eval_logits(struct eval *ev, smoe_err *err)
{
    smoe_status status;
    smoe_ids ids = {0};
    struct logits_out out = {.w = FILE_WRITER_CLOSED};
    if (!ev->ids_text || !ev->out_path) {
        return err_set(err, SMOE_USAGE, "logits needs --ids 1,2,3 and --out FILE");
    }
    CHECK(args_parse_ids(ev->ids_text, "ids", &ids, err));
    CHECK(open_model(ev, false, err));
    CHECK(file_create(&out.w, ev->out_path, err));
    out.n_vocab = ev->info->n_vocab;
    CHECK(smoe_session_logits(ev->session, ids.data, ids.len, write_row, &out, err));
    CHECK(file_commit(&out.w, err));
    printf("%zu x %u float32 logits in %s\n", ids.len, ev->info->n_vocab, ev->out_path);
out:
    file_abort(&out.w);
    smoe_ids_free(&ids);
    return status;
}

/* ---- perplexity ---- */

struct loss {
    const int32_t *ids; /* of the window */
    size_t n_ids;
    uint32_t n_vocab;
    double sum;
    size_t n;
};

static smoe_status add_loss(void *ctx, size_t position, const float *logits, smoe_err *err)
{
    struct loss *loss = ctx;
    (void)err;
    if (position + 1 >= loss->n_ids) {
        return SMOE_OK; /* what follows the last id is not known */
    }
    double max = logits[0], sum = 0;
    for (uint32_t v = 1; v < loss->n_vocab; v++) {
        max = logits[v] > max ? logits[v] : max;
    }
    for (uint32_t v = 0; v < loss->n_vocab; v++) {
        sum += exp(logits[v] - max);
    }
    loss->sum += max + log(sum) - logits[loss->ids[position + 1]];
    loss->n++;
    return SMOE_OK;
}

/* Windows of n_ctx ids that follow each other; the first id of each is given, not predicted. */
static smoe_status eval_perplexity(struct eval *ev, smoe_err *err)
{
    smoe_status status;
    smoe_ids ids = {0};
    buf text;
    struct loss loss = {0};
    buf_init(&text, FILE_MAX_BYTES);
    if (!ev->text_path) {
        return err_set(err, SMOE_USAGE, "perplexity needs --text FILE");
    }
    CHECK(file_slurp(ev->text_path, FILE_MAX_BYTES, &text, err));
    CHECK(open_model(ev, true, err));
    CHECK(smoe_tokenizer_encode(smoe_chat_format_tokenizer(ev->format), text.data, text.len, &ids,
                                err));
    if (ids.len < 2) {
        CHECK(err_set(err, SMOE_RANGE, "%s has %zu tokens; perplexity needs at least 2",
                      ev->text_path, ids.len));
    }
    loss.n_vocab = ev->info->n_vocab;
    for (size_t from = 0; from + 1 < ids.len; from += ev->info->n_ctx) {
        loss.ids = ids.data + from;
        loss.n_ids = ids.len - from < ev->info->n_ctx ? ids.len - from : ev->info->n_ctx;
        CHECK(smoe_session_logits(ev->session, loss.ids, loss.n_ids, add_loss, &loss, err));
    }
    printf("perplexity %.4f over %zu tokens (windows of %u)\n", exp(loss.sum / (double)loss.n),
           loss.n, ev->info->n_ctx);
out:
    buf_fini(&text);
    smoe_ids_free(&ids);
    return status;
}

/* ---- answers ---- */

struct kind {
    slice name;
    uint32_t n, n_right;
};

struct answers {
    struct eval *ev;
    const char *path;
    buf messages;
    buf answer;
    smoe_detok detok;
    smoe_err err;
    bool failed;
    struct kind kinds[MAX_KINDS];
    size_t n_kinds;
    uint32_t n, n_right, n_shown;
};

static bool add_answer_token(void *ctx, int32_t id)
{
    struct answers *a = ctx;
    char text[4096];
    size_t n = smoe_detok_push(&a->detok, id, text, sizeof text);
    if (n == SIZE_MAX || buf_append(&a->answer, text, n, &a->err) != SMOE_OK) {
        a->failed = true;
    }
    return !a->failed;
}

/* turns: JSON array of strings, user and assistant in turn, a user's last. */
static smoe_status build_messages(struct answers *a, slice turns, slice system, size_t line,
                                  smoe_err *err)
{
    smoe_status status;
    json_value *root = NULL;
    json_writer w;
    buf_clear(&a->messages);
    jw_init(&w, &a->messages);
    CHECK(jr_parse(turns, "the turns", &root, err));
    size_t n = jr_len(root);
    if (jr_kind(root) != JSON_KIND_ARRAY || n % 2 == 0) {
        CHECK(err_set(err, SMOE_FORMAT,
                      "%s line %zu: turns is not a JSON array of an odd number of strings",
                      a->path, line));
    }
    jw_begin_array(&w);
    for (size_t i = 0; i < n + (system.len > 0); i++) {
        size_t turn = i - (system.len > 0);
        slice content = system;
        if (turn < n && !jr_string(jr_at(root, turn), &content)) {
            CHECK(err_set(err, SMOE_FORMAT, "%s line %zu: turn %zu is not a string", a->path, line,
                          turn));
        }
        jw_begin_object(&w);
        jw_key(&w, "role");
        jw_cstr(&w, turn >= n ? "system" : turn % 2 ? "assistant" : "user");
        jw_key(&w, "content");
        jw_string(&w, content);
        jw_end_object(&w);
    }
    jw_end_array(&w);
    CHECK(jw_finish(&w, err));
out:
    jr_free(root);
    return status;
}

static struct kind *kind_of(struct answers *a, slice name)
{
    for (size_t i = 0; i < a->n_kinds; i++) {
        if (slice_eq(a->kinds[i].name, name)) {
            return &a->kinds[i];
        }
    }
    if (a->n_kinds == MAX_KINDS) {
        return &a->kinds[MAX_KINDS - 1];
    }
    a->kinds[a->n_kinds] = (struct kind){.name = name};
    return &a->kinds[a->n_kinds++];
}

static smoe_status ask(struct answers *a, const slice cells[4], size_t line, smoe_err *err)
{
    smoe_status status;
    struct eval *ev = a->ev;
    smoe_ids ids = {0};
    smoe_result result;
    CHECK(build_messages(a, cells[1], cells[3], line, err));
    CHECK(smoe_chat_format_encode(ev->format, a->messages.data, a->messages.len, NULL, &ids, err));
    buf_clear(&a->answer);
    smoe_detok_init(&a->detok, smoe_chat_format_tokenizer(ev->format));
    uint32_t n_max = ev->info->n_ctx < ANSWER_MAX_TOKENS ? ev->info->n_ctx : ANSWER_MAX_TOKENS;
    smoe_request request = {
        .ids = ids.data,
        .n_ids = ids.len,
        .max_tokens = n_max,
        .sampling = {.temperature = 0, .top_p = 1, .top_k = 1, .rep_penalty = 1}};
    smoe_events events = {.ctx = a, .token = add_answer_token};
    CHECK(smoe_session_generate(ev->session, &request, &events, &result, err));
    if (a->failed) {
        CHECK(err_set(err, a->err.code, "%s", a->err.text));
    }
    char rest[16];
    size_t n_rest = smoe_detok_finish(&a->detok, rest, sizeof rest);
    CHECK(buf_append(&a->answer, rest, n_rest == SIZE_MAX ? 0 : n_rest, err));
    bool right = slice_eq(buf_slice(&a->answer), cells[2]);
    struct kind *kind = kind_of(a, cells[0]);
    kind->n++;
    kind->n_right += right;
    a->n++;
    a->n_right += right;
    if (!right && a->n_shown < ev->n_show) {
        a->n_shown++;
        printf("line %zu: %.*s\n  expected: %.*s\n  found:    %.*s\n", line, SLICE_ARG(cells[1]),
               SLICE_ARG(cells[2]), SLICE_ARG(buf_slice(&a->answer)));
    }
out:
    smoe_ids_free(&ids);
    return status;
}

/* Cuts one line at its tabs; missing cells are empty. */
static size_t split_line(slice line, slice cells[4])
{
    size_t n = 0;
    for (size_t i = 0; i < 4; i++) {
        cells[i] = (slice){"", 0};
    }
    while (n < 4) {
        const char *tab = line.len ? memchr(line.data, '\t', line.len) : NULL;
        size_t len = tab ? (size_t)(tab - line.data) : line.len;
        cells[n++] = slice_of(line.data, len);
        if (!tab) {
            break;
        }
        line = slice_of(tab + 1, line.len - len - 1);
    }
    return n;
}

static smoe_status ask_all(struct answers *a, slice text, smoe_err *err)
{
    for (size_t line = 1; text.len; line++) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t len = end ? (size_t)(end - text.data) : text.len;
        slice cells[4];
        size_t n = split_line(slice_of(text.data, len), cells);
        text = slice_of(text.data + len + (end != NULL), text.len - len - (end != NULL));
        if (line == 1 && slice_is(cells[0], "kind")) {
            continue;
        }
        if (n < 3) {
            return err_set(err, SMOE_FORMAT,
                           "%s line %zu has %zu columns; expected are kind, turns, "
                           "answer and perhaps system, separated by tabs",
                           a->path, line, n);
        }
        TRY(ask(a, cells, line, err));
        if (isatty(STDERR_FILENO)) {
            fprintf(stderr, "\r%u asked, %u right", a->n, a->n_right);
        }
    }
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r\033[K");
    }
    return SMOE_OK;
}

static smoe_status eval_answers(struct eval *ev, smoe_err *err)
{
    smoe_status status;
    struct answers a = {.ev = ev, .path = ev->answers_path};
    buf text;
    buf_init(&text, FILE_MAX_BYTES);
    buf_init(&a.messages, FILE_MAX_BYTES);
    buf_init(&a.answer, FILE_MAX_BYTES);
    if (!ev->answers_path) {
        return err_set(err, SMOE_USAGE, "answers needs --file FILE.tsv");
    }
    CHECK(file_slurp(ev->answers_path, FILE_MAX_BYTES, &text, err));
    CHECK(open_model(ev, true, err));
    CHECK(ask_all(&a, buf_slice(&text), err));
    if (a.n == 0) {
        CHECK(err_set(err, SMOE_FORMAT, "%s holds no questions", a.path));
    }
    for (size_t i = 0; i < a.n_kinds; i++) {
        const struct kind *k = &a.kinds[i];
        printf("%-24.*s %6.2f %%  (%u of %u)\n", SLICE_ARG(k->name), 100.0 * k->n_right / k->n,
               k->n_right, k->n);
    }
    printf("%-24s %6.2f %%  (%u of %u)\n", "all", 100.0 * a.n_right / a.n, a.n_right, a.n);
out:
    buf_fini(&text);
    buf_fini(&a.messages);
    buf_fini(&a.answer);
    return status;
}

static const struct task {
    const char *name;
    smoe_status (*run)(struct eval *ev, smoe_err *err);
} tasks[] = {{"logits", eval_logits}, {"perplexity", eval_perplexity}, {"answers", eval_answers}};

enum { N_TASKS = sizeof tasks / sizeof tasks[0] };

static smoe_status run(struct eval *ev, const opt *table, int argc, char **argv, smoe_err *err)
{
    const char *pos[2] = {NULL, NULL};
    size_t n_pos;
    TRY(opts_parse(table, argc, argv, 1, pos, 2, &n_pos, err));
    TRY(args_parse_kv_type(ev->kv_type, &ev->params.kv_type, err));
    if (ev->help) {
        char text[4096];
        opts_help(table, text, sizeof text);
        printf("usage: smoe eval logits [MODEL] --ids 1,2,3 --out FILE\n"
               "       smoe eval perplexity [MODEL] --text FILE\n"
               "       smoe eval answers [MODEL] --file FILE.tsv   (kind, turns, answer, system)\n"
               "%s", text);
        return SMOE_OK;
    }
    for (int i = 0; n_pos > 0 && i < N_TASKS; i++) {
        if (strcmp(pos[0], tasks[i].name) == 0) {
            ev->model = pos[1];
            return tasks[i].run(ev, err);
        }
    }
    return err_set(err, SMOE_USAGE,
                   "say what to evaluate: logits, perplexity or answers, not \"%s\"",
                   n_pos ? pos[0] : "");
}

int cmd_eval(int argc, char **argv)
{
    struct eval ev = {.params.kv_type = SMOE_KV_F32};
    smoe_err err = {0};
    const opt table[] = {
        {"ids", OPT_TEXT, &ev.ids_text, 0, 0, "IDS", "logits: token ids, 1,2,3", NULL},
        {"out", OPT_TEXT, &ev.out_path, 0, 0, "FILE", "logits: where they go", NULL},
        {"text", OPT_TEXT, &ev.text_path, 0, 0, "FILE", "perplexity: the text", NULL},
        {"file", OPT_TEXT, &ev.answers_path, 0, 0, "FILE", "answers: questions and answers", NULL},
        {"show", OPT_U32, &ev.n_show, 0, 1e9, "N", "answers: print the first N wrong ones", NULL},
        {"ctx", OPT_U32, &ev.params.n_ctx, 1, 1e9, "N", "context in tokens", NULL},
        {"ring", OPT_U32, &ev.params.n_ring, 0, 4e9, "N", "expert slots; 0 = what fits", NULL},
        {"mem-limit", OPT_SIZE, &ev.params.mem_limit_bytes, 0, 0, "SIZE", "memory for everything",
         NULL},
        {"threads", OPT_U32, &ev.params.n_threads, 1, 1024, "N", "default: every core allowed",
         NULL},
        {"kv-type", OPT_TEXT, &ev.kv_type, 0, 0, "TYPE",
         "KV cache: f32 (default here), f16 or q8_0",
         NULL},
        {"help", OPT_FLAG, &ev.help, 0, 0, NULL, "this text", NULL},
        {NULL, OPT_FLAG, NULL, 0, 0, NULL, NULL, NULL},
    };
    smoe_status status = run(&ev, table, argc, argv, &err);
    close_model(&ev);
    return status == SMOE_OK ? 0 : app_fail("eval", &err);
}
