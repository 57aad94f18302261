/* serve.h: the engine's side of the protocol: requests on one descriptor, replies on another.
 *
 * Owns the request queue and the rule that every request gets exactly one terminal line. Refuses
 * nothing itself beyond the grammar: what fits is the session's to say. */
#ifndef PROTOCOL_SERVE_H
#define PROTOCOL_SERVE_H

#include "smoe/engine.h"

typedef struct serve_options {
    smoe_sampling sampling;  /* for what a request does not override */
    size_t max_line_bytes;   /* 0 = 16 per token of context + 4096, at least 1 MiB */
    void (*log)(void *ctx, const char *sentence);        /* why a request failed; may be NULL */
    void (*done)(void *ctx, const smoe_result *result);  /* after each answered GEN; may be NULL */
    void *log_ctx;                                       /* of both */
} serve_options;

/* Runs until the end of input, or until whoever reads out_fd has gone: both are SMOE_OK. Requests
 * that were complete when the input ended are answered first. SMOE_IO, SMOE_NOMEM when it cannot go
 * on. */
smoe_status serve_run(smoe_session *session, const smoe_engine_info *info,
                      const serve_options *options, int in_fd, int out_fd, smoe_err *err);

#endif
