/* core.h: what all connections share. */
#ifndef HTTP_CORE_H
#define HTTP_CORE_H

#include "http/metrics.h"
#include "http/worker.h"

typedef struct http_core {
    const http_options *options;
    queue queue;
    worker worker;
    metrics metrics;
    smoe_chat_format **formats;   /* one per model, NULL until it is asked for */
    pthread_mutex_t formats_lock;
    uint64_t id_start;            /* random */
    atomic_uint_fast64_t n_ids;
    atomic_size_t n_connections, n_exchanges;
    atomic_uint_fast64_t n_body_bytes; /* of all requests, until they are understood */
} http_core;

smoe_status core_init(http_core *c, const http_options *options, smoe_err *err);
void core_fini(http_core *c);

/* The model of that name; the one that is loaded when the name is empty; NULL: there is none. */
const http_model *core_find_model(http_core *c, slice name);
/* Its tokenizer and template, read when first asked for; owned by the core. */
smoe_status core_format(http_core *c, const http_model *model, const smoe_chat_format **out,
                        smoe_err *err);
/* 32 hex digits, none twice. */
void core_make_id(http_core *c, char id[33]);

#endif
