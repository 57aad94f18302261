/* smoe/protocol.h: the engine's line protocol, seen from a client: start an engine, send requests,
 * read tokens, survive its death. Grammar in docs/protocol.md. */
#ifndef SMOE_PROTOCOL_H
#define SMOE_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "smoe/logprobs.h"
#include "smoe/status.h"

typedef struct smoe_client smoe_client;

/* argv: the engine's command line, NULL-terminated; copied. The child gets its own process group,
 * so a terminal's Ctrl-C does not reach it. Its stderr goes to stderr_fd (-1 = inherited). */
smoe_status smoe_client_start(const char *const *argv, int stderr_fd, smoe_client **out,
                              smoe_err *err);
void smoe_client_free(smoe_client *c); /* closes its input, waits 2 s, then SIGTERM, then SIGKILL */
pid_t smoe_client_pid(const smoe_client *c);
/* After SMOE_CHILD: how it ended, as a shell would report it (128 + signal). */
int smoe_client_exit_status(smoe_client *c);
smoe_status smoe_client_restart(smoe_client *c, smoe_err *err);

enum smoe_reply_kind {
    SMOE_REPLY_TOKEN,    /* id */
    SMOE_REPLY_LOGPROBS, /* logprobs, of the token before; only when the request asks for them */
    SMOE_REPLY_PROGRESS, /* done, total */
    SMOE_REPLY_DONE,     /* fin and counters; the request is over */
    SMOE_REPLY_ERROR,    /* error: "ctx_overflow" ...; the request is over */
    SMOE_REPLY_TIMEOUT,  /* nothing arrived within the time asked for */
};

/* What the experts of one request cost, and where the engine's memory is. */
typedef struct smoe_expert_tier {
    bool is_known;                  /* the engine says so */
    uint64_t n_lookups, n_hits, n_evictions;
    uint64_t bytes_read, bytes_wasted; /* wasted: read ahead, and given up unused */
    double read_s;                  /* while at least one read was under way */
    uint64_t scout_bytes, kv_bytes, scratch_bytes, ring_bytes;
} smoe_expert_tier;

typedef struct smoe_reply {
    enum smoe_reply_kind kind;
    int32_t id;
    smoe_logprobs logprobs;
    uint64_t done, total;
    char fin[16];        /* "stop" "length" "cancel", or "" */
    char error[32];
    uint64_t n_generated, n_prompt, n_cached; /* n= pp= pc=; 0 when the engine does not say */
    double prefill_s, decode_s, hit;          /* negative when the engine does not say */
    smoe_expert_tier tier;
} smoe_reply;

typedef struct smoe_client_request {
    const int32_t *ids;
    size_t n_ids;
    uint32_t max_tokens;
    const char *overrides; /* "t=0 s=7", or NULL */
} smoe_client_request;

smoe_status smoe_client_send(smoe_client *c, const smoe_client_request *request, smoe_err *err);
smoe_status smoe_client_cancel(smoe_client *c, smoe_err *err);
smoe_status smoe_client_send_reset(smoe_client *c, smoe_err *err);
/* The next event; waits at most timeout_ms (-1 = for ever). SMOE_CHILD when the engine is gone or
 * prints what is not the protocol. EINTR counts as a time-out, so that a signal is noticed at once.
 */
smoe_status smoe_client_next(smoe_client *c, int timeout_ms, smoe_reply *reply, smoe_err *err);

#endif
