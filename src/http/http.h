/* http.h: the server: OpenAI's and other APIs over HTTP, in front of one engine.
 *
 * Knows the engine only through its protocol, so the engine's death is an error of one request. */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "smoe/tokenizer.h"

/* A model that can be asked for. All texts are borrowed and outlive the server. */
typedef struct http_model {
    const char *name;               /* as clients write it */
    const char *lineage;
    const char *const *engine_argv; /* smoe-engine ... --serve, NULL-terminated */
    const char *scout_path;
    uint32_t n_ctx;                 /* that the engine is started with */
    int64_t created;                /* Unix time of its files */
} http_model;

enum http_log_form { HTTP_LOG_NONE, HTTP_LOG_TEXT, HTTP_LOG_JSON };

typedef struct http_options {
    const http_model *models; /* the first is loaded at start */
    size_t n_models;
    /* Tokenizer and template of a model; called once for each that is asked for. */
    smoe_status (*open_format)(const http_model *model, smoe_chat_format **out, smoe_err *err);
    const char *host;         /* an address, or localhost */
    uint16_t port;            /* 0 = any that is free */
    const char *const *keys;  /* NULL-terminated, or NULL = none needed */
    const char *cors_origin;  /* or NULL; "*" = any */
    uint32_t max_waiting;     /* requests that may wait; one more is refused with 429 */
    uint32_t max_connections;
    uint64_t max_body_bytes;
    uint32_t timeout_s;       /* for one request, its waiting included; 0 = none */
    uint32_t client_s;        /* for a client to send its request or take a piece of the reply */
    enum http_log_form access_log;
    /* One line without its end; from any thread. */
    void (*log)(void *ctx, const char *line);
    /* The model did not load at start: the server is of no use. Called once, from any thread. */
    void (*failed)(void *ctx, const char *sentence);
    void *ctx;
} http_options;

typedef struct http_server http_server;

/* Listens from here on; requests wait while the model loads. SMOE_USAGE: the address needs a key.
 * SIGPIPE must be ignored by the caller. options is borrowed until http_server_stop. */
smoe_status http_server_start(const http_options *options, http_server **out, smoe_err *err);
uint16_t http_server_port(const http_server *s);
/* Accepts nothing more, answers what was accepted for at most drain_s seconds, cancels what is left
 * then, ends the engine. NULL is nothing. */
void http_server_stop(http_server *s, unsigned drain_s);

#endif
