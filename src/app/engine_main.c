/* engine_main.c: the program smoe-engine: flags, then one request or --serve. Diagnostics go to
 * stderr only. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/args.h"
#include "app/instrument.h"
#include "app/read_tokenizer.h"
#include "base/mem.h"
#include "base/opts.h"
#include "engine/budget.h"
#include "protocol/serve.h"
#include "smoe/engine.h"
#include "smoe/tokenizer.h"

enum { DEFAULT_SEED = 1337 };

struct engine_flags {
    smoe_engine_params engine;
    smoe_session_params session;
    smoe_sampling sampling;
    const char *tokens_in, *eos_ids, *kv_type, *instrument_as;
    uint32_t n_tokens;
    bool serve, raw_ids, no_prewarm, help, version;
    instrument instrument;
    unsigned load_tenth; /* of loading the experts, as far as it was told */
};

static int fail(const smoe_err *err)
{
    fprintf(stderr, "smoe-engine: %s\n", err->text);
    return err->code == SMOE_USAGE ? 2 : 1;
}

static void log_sentence(void *ctx, const char *sentence)
{
    (void)ctx;
    fprintf(stderr, "smoe-engine: %s\n", sentence);
}

static smoe_status check_flags(struct engine_flags *f, smoe_err *err)
{
    if (!f->engine.vault_path || !f->engine.scout_path) {
        return err_set(err, SMOE_USAGE,
                       "--%s is missing; both --vault FILE and --scout FILE are needed",
                       f->engine.vault_path ? "scout" : "vault");
    }
    if (f->serve == (f->tokens_in != NULL)) {
        return err_set(err, SMOE_USAGE, f->serve ? "--serve and --tokens-in exclude each other"
                                                 : "say what to do: --serve, or --tokens-in IDS");
    }
    if (f->serve && (f->raw_ids || f->n_tokens)) {
        return err_set(err, SMOE_USAGE,
                       "--%s belongs to --tokens-in; with --serve each request says it itself",
                       f->raw_ids ? "raw-ids" : "tokens");
    }
    if (f->tokens_in && f->no_prewarm) {
        return err_set(err, SMOE_USAGE, "--no-prewarm belongs to --serve; --tokens-in answers at "
                       "once and reads nothing ahead");
    }
    f->engine.prewarm = f->serve && !f->no_prewarm;
    TRY(instrument_parse(f->instrument_as, &f->instrument, err));
    f->session.instrument = f->instrument.is_on;
    return args_parse_kv_type(f->kv_type, &f->engine.kv_type, err);
}

static smoe_status parse_flags(struct engine_flags *f, int argc, char **argv, smoe_err *err)
{
    const opt table[] = {
        {"vault", OPT_TEXT, &f->engine.vault_path, 0, 0, "FILE", "the experts (<stem>.smoe)", NULL},
        {"scout", OPT_TEXT, &f->engine.scout_path, 0, 0, "FILE",
         "the backbone (<stem>.scout.safetensors)", NULL},
        {"serve", OPT_FLAG, &f->serve, 0, 0, NULL, "answer requests on stdin (docs/protocol.md)",
         NULL},
        {"tokens-in", OPT_TEXT, &f->tokens_in, 0, 0, "IDS", "one request: 1,2,3; then exit", NULL},
        {"tokens", OPT_U32, &f->n_tokens, 1, 1e9, "N",
         "with --tokens-in: most tokens to generate (default: what fits)", NULL},
        {"raw-ids", OPT_FLAG, &f->raw_ids, 0, 0, NULL, "with --tokens-in: print ids, not text",
         NULL},
        {"ctx", OPT_U32, &f->engine.n_ctx, 1, 1e9, "N",
         "context in tokens (default: 4096, or the model's maximum)", NULL},
        {"max-suffix", OPT_U32, &f->session.max_suffix, 1, 1e9, "N",
         "most new ids in one request (default: the context)", NULL},
        {"temperature", OPT_FLOAT, &f->sampling.temperature, 0, 100, "X",
         "0 = greedy (default 0.6)", NULL},
        {"top-p", OPT_FLOAT, &f->sampling.top_p, 1e-6, 1, "X", "nucleus (default 0.95)", NULL},
        {"top-k", OPT_U32, &f->sampling.top_k, 1, 1e9, "N", "candidates (default 50, at most 1024)",
         NULL},
        {"rep-penalty", OPT_FLOAT, &f->sampling.rep_penalty, 0.01, 100, "X",
         "over the last 256 tokens (default 1.1; 1 = none)", NULL},
        {"min-p", OPT_FLOAT, &f->sampling.min_p, 0, 1, "X",
         "least probability, as a share of the likeliest token's (default 0)", NULL},
        {"presence-penalty", OPT_FLOAT, &f->sampling.presence_penalty, -2, 2, "X",
         "off the logit of each token that was generated (default 0)", NULL},
        {"frequency-penalty", OPT_FLOAT, &f->sampling.frequency_penalty, -2, 2, "X",
         "the same, for each time it was generated (default 0)", NULL},
        {"seed", OPT_U64, &f->session.seed, 0, 0, "N", "of the sampler (default 1337)", NULL},
        {"eos-ids", OPT_TEXT, &f->eos_ids, 0, 0, "IDS", "end tokens, instead of the checkpoint's",
         NULL},
        {"ring", OPT_U32, &f->engine.n_ring, 0, 4e9, "N", "expert slots; 0 = what fits (default)",
         NULL},
        {"mem-limit", OPT_SIZE, &f->engine.mem_limit_bytes, 0, 0, "SIZE",
         "memory for everything (default: what the machine offers)", NULL},
        {"threads", OPT_U32, &f->engine.n_threads, 1, 1024, "N", "default: every core allowed",
         NULL},
        {"kv-type", OPT_TEXT, &f->kv_type, 0, 0, "TYPE",
         "KV cache: f16 (default), f32 or q8_0", NULL},
        {"instrument", OPT_OPTIONAL, &f->instrument_as, 0, 0, "[=json]",
         "where the time of each request went, one line on stderr", NULL},
        {"workers", OPT_U32, &f->engine.n_workers, 1, 256, "N",
         "reads in flight at once (default: what a trial at start finds best)", NULL},
        {"io", OPT_TEXT, &f->engine.io, 0, 0, "WAY",
         "uring or threads, direct or buffered, or one of each: uring,direct (default: by trial)",
         NULL},
        {"spec", OPT_U32, &f->session.n_spec, 0, 1024, "N",
         "experts to guess and read ahead per layer while the drive idles (default 0)", NULL},
        {"no-prewarm", OPT_FLAG, &f->no_prewarm, 0, 0, NULL,
         "with --serve: read nothing ahead between requests, keep no history of experts", NULL},
        {"help", OPT_FLAG, &f->help, 0, 0, NULL, "this text", NULL},
        {"version", OPT_FLAG, &f->version, 0, 0, NULL, "the version", NULL},
        {NULL, OPT_FLAG, NULL, 0, 0, NULL, NULL, NULL},
    };
    const char *none[1];
    size_t n_none;
    TRY(opts_parse(table, argc, argv, 1, none, 0, &n_none, err));
    if (f->help) {
        char text[8192];
        opts_help(table, text, sizeof text);
        printf(
            "usage: smoe-engine --vault FILE --scout FILE (--serve | --tokens-in IDS) [flags]\n%s",
            text);
        return SMOE_OK;
    }
    return f->version ? SMOE_OK : check_flags(f, err);
}

/* What one-shot mode prints: ids, or text through the scout's own tokenizer. */
struct printer {
    smoe_tokenizer *tok; /* NULL = ids */
    smoe_detok detok;
    bool first;
};

static bool print_token(void *ctx, int32_t id)
{
    struct printer *p = ctx;
    if (!p->tok) {
        printf(p->first ? "%d" : " %d", id);
    } else {
        char text[4096];
        size_t n = smoe_detok_push(&p->detok, id, text, sizeof text);
        if (n != SIZE_MAX) {
            fwrite(text, 1, n, stdout);
        }
    }
    p->first = false;
    return fflush(stdout) == 0;
}

static smoe_status load_tokenizer(const char *scout_path, smoe_tokenizer **tok, smoe_err *err)
{
    smoe_status status;
    scout s;
    TRY(scout_open(&s, scout_path, err));
    status = app_read_tokenizer(&s, tok, err);
    scout_close(&s);
    return status;
}

static void on_done(void *ctx, const smoe_result *r)
{
    const struct engine_flags *f = ctx;
    instrument_line(&f->instrument, r);
}

enum { LOAD_IS_LONG_BYTES = 1 << 30 };

/* One line per tenth of a load that takes a while. */
static bool on_load(void *ctx, uint64_t n_done, uint64_t n_total)
{
    struct engine_flags *f = ctx;
    unsigned tenth = (unsigned)(n_done * 10 / n_total);
    char done[BUDGET_TEXT], total[BUDGET_TEXT];
    if (n_total >= LOAD_IS_LONG_BYTES && tenth > f->load_tenth) {
        f->load_tenth = tenth;
        fprintf(stderr, "smoe-engine: loading experts: %s of %s\n", budget_size_text(n_done, done),
                budget_size_text(n_total, total));
    }
    return true;
}

static smoe_status one_shot(const struct engine_flags *f, smoe_session *session,
                            const smoe_engine_info *info, const smoe_ids *ids, smoe_err *err)
{
    smoe_status status = SMOE_OK;
    struct printer p = {.first = true};
    smoe_result result;
    if (!f->raw_ids) {
        TRY(load_tokenizer(f->engine.scout_path, &p.tok, err));
        smoe_detok_init(&p.detok, p.tok);
    }
    smoe_request request = {.ids = ids->data, .n_ids = ids->len, .sampling = f->sampling,
                            .max_tokens = f->n_tokens ? f->n_tokens : info->n_ctx};
    smoe_events events = {.ctx = &p, .token = print_token};
    CHECK(smoe_session_generate(session, &request, &events, &result, err));
    if (p.tok) {
        char text[16];
        size_t n = smoe_detok_finish(&p.detok, text, sizeof text);
        fwrite(text, 1, n == SIZE_MAX ? 0 : n, stdout);
    }
    printf("\n");
    if (f->instrument.is_on) {
        instrument_line(&f->instrument, &result);
    }
    if (fflush(stdout) != 0) {
        CHECK(err_errno(err, SMOE_IO, "standard output cannot be written"));
    }
out:
    smoe_tokenizer_free(p.tok);
    return status;
}

static smoe_status run(struct engine_flags *f, smoe_err *err)
{
    smoe_status status;
    smoe_engine *engine = NULL;
    smoe_session *session = NULL;
    smoe_ids ids = {0}, eos = {0};
    if (f->tokens_in) {
        CHECK(args_parse_ids(f->tokens_in, "tokens-in", &ids, err));
    }
    if (f->eos_ids) {
        CHECK(args_parse_ids(f->eos_ids, "eos-ids", &eos, err));
        f->session.eos_ids = eos.data;
        f->session.n_eos_ids = eos.len;
    }
    f->engine.ctx = f;
    f->engine.log = log_sentence;
    f->engine.load_progress = on_load;
    CHECK(smoe_engine_open(&f->engine, &engine, err));
    CHECK(smoe_session_new(engine, &f->session, &session, err));
    const smoe_engine_info *info = smoe_engine_get_info(engine);
    f->instrument.record_bytes = info->record_bytes;
    if (f->serve) {
        serve_options options = {.sampling = f->sampling, .log = log_sentence,
                                 .done = f->instrument.is_on ? on_done : NULL, .log_ctx = f};
        CHECK(serve_run(session, info, &options, STDIN_FILENO, STDOUT_FILENO, err));
    } else {
        CHECK(one_shot(f, session, info, &ids, err));
    }
out:
    smoe_session_free(session);
    smoe_engine_close(engine);
    smoe_ids_free(&ids);
    smoe_ids_free(&eos);
    return status;
}

int main(int argc, char **argv)
{
    smoe_err err = {0};
    struct engine_flags f = {.sampling = smoe_sampling_defaults(), .session.seed = DEFAULT_SEED,
                             .engine.isa = getenv("SMOE_ISA")};
    signal(SIGPIPE, SIG_IGN); /* a reader that has gone is an error of write, not a death */
    if (parse_flags(&f, argc, argv, &err) != SMOE_OK) {
        return fail(&err);
    }
    if (f.help) {
        return 0;
    }
    if (f.version) {
        printf("smoe-engine %s\n", SMOE_VERSION);
        return 0;
    }
    return run(&f, &err) == SMOE_OK ? 0 : fail(&err);
}
