/* cmd_http.c: `smoe http`: finds the models, reads the keys, starts the server of http/ and waits
 * for a signal. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/app.h"
#include "app/served_models.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/opts.h"
#include "http/http.h"

enum {
    MAX_KEYS = 1024,
    KEY_FILE_MAX_BYTES = 1 << 20,
    DEFAULT_PORT = 8080,
    DEFAULT_WAITING = 64,
    DEFAULT_CONNECTIONS = 256,
    DEFAULT_BODY_BYTES = 32 << 20,
    DEFAULT_TIMEOUT_S = 3600,
    DEFAULT_CLIENT_S = 30,
    DEFAULT_DRAIN_S = 30,
};

struct http_flags {
    http_options options;
    const char *key_file, *vault_dir, *log;
    uint32_t port, drain_s;
    served_engine_flags engine;
    bool help;
    const char *models[SERVED_MAX];
    size_t n_models;
};

static smoe_status parse_flags(struct http_flags *f, int argc, char **argv, smoe_err *err)
{
    http_options *o = &f->options;
    served_engine_flags *e = &f->engine;
    const opt table[] = {
        {"host", OPT_TEXT, &o->host, 0, 0, "ADDRESS",
         "where to listen (default 127.0.0.1; any other needs --api-key-file)", NULL},
        {"port", OPT_U32, &f->port, 0, 65535, "N", "default 8080; 0 = any that is free", NULL},
        {"api-key-file", OPT_TEXT, &f->key_file, 0, 0, "FILE", "the keys, one a line; # comments",
         NULL},
        {"vault-dir", OPT_TEXT, &f->vault_dir, 0, 0, "DIR", "offer every model in it, too", NULL},
        {"cors-origin", OPT_TEXT, &o->cors_origin, 0, 0, "ORIGIN",
         "a page whose scripts may use this server, such as https://chat.example; * = all", NULL},
        {"max-waiting", OPT_U32, &o->max_waiting, 1, 1e6, "N",
         "requests that may wait (default 64); more are refused with 429", NULL},
        {"max-connections", OPT_U32, &o->max_connections, 1, 1e5, "N", "default 256", NULL},
        {"max-body", OPT_SIZE, &o->max_body_bytes, 0, 0, "SIZE", "of a request (default 32M)",
         NULL},
        {"timeout", OPT_U32, &o->timeout_s, 0, 1e6, "S",
         "for a request, its waiting included (default 3600; 0 = none)", NULL},
        {"client-timeout", OPT_U32, &o->client_s, 1, 1e6, "S",
         "for a client that sends or reads slowly (default 30)", NULL},
        {"drain", OPT_U32, &f->drain_s, 0, 1e6, "S",
         "after SIGTERM, for requests that were accepted (default 30)", NULL},
        {"log", OPT_TEXT, &f->log, 0, 0, "FORM",
         "one line per request on stderr: text (default), json or none", NULL},
        {"ctx", OPT_U32, &e->n_ctx, 1, 1e9, "N",
         "context in tokens (default: 4096, or the model's maximum)", NULL},
        {"temperature", OPT_TEXT, &e->texts[SERVED_TEMPERATURE], 0, 0, "X",
         "where a request does not say; so are the next four", NULL},
        {"top-p", OPT_TEXT, &e->texts[SERVED_TOP_P], 0, 0, "X", "nucleus", NULL},
        {"top-k", OPT_TEXT, &e->texts[SERVED_TOP_K], 0, 0, "N", "candidates", NULL},
        {"rep-penalty", OPT_TEXT, &e->texts[SERVED_REP_PENALTY], 0, 0, "X", "against repetition",
         NULL},
        {"seed", OPT_TEXT, &e->texts[SERVED_SEED], 0, 0, "N", "of the sampler", NULL},
        {"threads", OPT_TEXT, &e->texts[SERVED_THREADS], 0, 0, "N", "default: every core allowed",
         NULL},
        {"ring", OPT_TEXT, &e->texts[SERVED_RING], 0, 0, "N",
         "expert slots; 0 = what fits (default)", NULL},
        {"mem-limit", OPT_TEXT, &e->texts[SERVED_MEM_LIMIT], 0, 0, "SIZE",
         "memory for everything (default: what the machine offers)", NULL},
        {"kv-type", OPT_TEXT, &e->texts[SERVED_KV_TYPE], 0, 0, "TYPE",
         "KV cache: f16 (default), f32 or q8_0", NULL},
        {"no-prewarm", OPT_FLAG, &e->no_prewarm, 0, 0, NULL,
         "read nothing ahead between requests, keep no history of experts", NULL},
        {"help", OPT_FLAG, &f->help, 0, 0, NULL, "this text", NULL},
        {NULL, OPT_FLAG, NULL, 0, 0, NULL, NULL, NULL},
    };
    TRY(opts_parse(table, argc, argv, 1, f->models, SERVED_MAX, &f->n_models, err));
    if (f->help) {
        char text[8192];
        opts_help(table, text, sizeof text);
        printf("usage: smoe http [MODEL...] [flags]\n\n"
               "Serves the API of OpenAI for programs that know it. The first MODEL is loaded,\n"
               "the others when a request names them. Without MODEL and --vault-dir, the\n"
               "model that ships. docs/http-api.md describes what is understood.\n\n%s", text);
    }
    return SMOE_OK;
}

static smoe_status choose_log(const char *name, enum http_log_form *form, smoe_err *err)
{
    static const char *const names[] = {
        [HTTP_LOG_NONE] = "none", [HTTP_LOG_TEXT] = "text", [HTTP_LOG_JSON] = "json"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, names[i]) == 0) {
            *form = (enum http_log_form)i;
            return SMOE_OK;
        }
    }
    return err_set(err, SMOE_USAGE, "--log is text, json or none, not \"%.40s\"", name);
}

/* Cuts the file into its lines; the keys point into text. */
static smoe_status read_keys(const char *path, buf *text, const char **keys, smoe_err *err)
{
    size_t n = 0;
    char *rest = NULL;
    TRY(file_slurp(path, KEY_FILE_MAX_BYTES, text, err));
    for (char *line = strtok_r(text->len > 0 ? text->data : NULL, "\r\n", &rest); line != NULL;
         line = strtok_r(NULL, "\r\n", &rest)) {
        line += strspn(line, " \t");
        line[strcspn(line, " \t")] = '\0';
        if (*line == '\0' || *line == '#') {
            continue;
        }
        if (n == MAX_KEYS) {
            return err_set(err, SMOE_USAGE, "%s holds more than %d keys", path, MAX_KEYS);
        }
        keys[n++] = line;
    }
    keys[n] = NULL;
    return n > 0 ? SMOE_OK : err_set(err, SMOE_USAGE, "%s holds no key; one a line", path);
}

static smoe_status open_format(const http_model *model, smoe_chat_format **out, smoe_err *err)
{
    return app_open_chat_format(model->scout_path, out, err);
}

static void log_line(void *ctx, const char *line)
{
    (void)ctx;
    fprintf(stderr, "%s\n", line);
}

/* What the server says when it cannot go on; read after SIGUSR1, which follows it. */
static char failure[sizeof((smoe_err *)0)->text];

static void failed(void *ctx, const char *sentence)
{
    (void)ctx;
    snprintf(failure, sizeof failure, "%s", sentence);
    kill(getpid(), SIGUSR1);
}

/* Blocked in every thread; only sigwait sees them. */
static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
    sigaddset(set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* A second signal ends the process at once. */
static void *wait_for_second(void *set)
{
    int number;
    sigwait(set, &number);
    _exit(128 + number);
}

static smoe_status serve(struct http_flags *f, smoe_err *err)
{
    static sigset_t set;
    http_server *server = NULL;
    int number = 0;
    pthread_t second;
    block_signals(&set);
    TRY(http_server_start(&f->options, &server, err));
    bool is_v6 = strchr(f->options.host, ':') != NULL;
    fprintf(stderr, "smoe http: listening on http://%s%s%s:%u\n", is_v6 ? "[" : "",
            f->options.host, is_v6 ? "]" : "", http_server_port(server));
    sigwait(&set, &number);
    if (number != SIGUSR1) {
        fprintf(stderr, "smoe http: ending; what was accepted is answered first\n");
    }
    sigdelset(&set, SIGUSR1); /* a load that fails from now on ends nothing early */
    if (pthread_create(&second, NULL, wait_for_second, &set) == 0) {
        pthread_detach(second);
    }
    http_server_stop(server, f->drain_s);
    return number != SIGUSR1 ? SMOE_OK
                             : err_set(err, SMOE_CHILD, "the model did not load: %s", failure);
}

static smoe_status run(struct http_flags *f, smoe_err *err)
{
    smoe_status status;
    buf key_text;
    static const char *keys[MAX_KEYS + 1];
    served_models models = {.n = 0};
    buf_init(&key_text, KEY_FILE_MAX_BYTES);
    f->options.port = (uint16_t)f->port;
    f->options.open_format = open_format;
    f->options.log = log_line;
    f->options.failed = failed;
    CHECK(choose_log(f->log, &f->options.access_log, err));
    if (f->key_file != NULL) {
        CHECK(read_keys(f->key_file, &key_text, keys, err));
        f->options.keys = keys;
    }
    CHECK(served_models_find(&models, f->models, f->n_models, f->vault_dir, &f->engine, err));
    f->options.models = models.list;
    f->options.n_models = models.n;
    CHECK(serve(f, err));
out:
    served_models_free(&models);
    buf_fini(&key_text);
    return status;
}

int cmd_http(int argc, char **argv)
{
    smoe_err err = {0};
    struct http_flags flags = {
        .options = {.host = "127.0.0.1", .max_waiting = DEFAULT_WAITING,
                    .max_connections = DEFAULT_CONNECTIONS, .max_body_bytes = DEFAULT_BODY_BYTES,
                    .timeout_s = DEFAULT_TIMEOUT_S, .client_s = DEFAULT_CLIENT_S},
        .log = "text",
        .port = DEFAULT_PORT,
        .drain_s = DEFAULT_DRAIN_S,
    };
    smoe_status status = parse_flags(&flags, argc, argv, &err);
    if (status == SMOE_OK && !flags.help) {
        status = run(&flags, &err);
    }
    return status == SMOE_OK ? 0 : app_fail("http", &err);
}
