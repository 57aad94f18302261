/* smoe/engine.h: token ids in, token ids out.
 *
 * An engine is a loaded model: immutable after open. A session is one timeline of tokens with its
 * KV cache. All functions of one session are called from one thread. */
#ifndef SMOE_ENGINE_H
#define SMOE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "smoe/logprobs.h"
#include "smoe/status.h"

typedef struct smoe_engine smoe_engine;
typedef struct smoe_session smoe_session;

typedef enum smoe_kv_type { SMOE_KV_F16, SMOE_KV_F32, SMOE_KV_Q8_0 } smoe_kv_type;

typedef struct smoe_engine_params {
    const char *vault_path, *scout_path;
    const char *isa;           /* kernel set by name; NULL = the best this CPU has */
    uint32_t n_ctx;            /* 0 = the smaller of the checkpoint's maximum and 4096 */
    uint32_t n_threads;        /* 0 = every core this process may use */
    uint32_t n_ring;           /* expert slots; 0 = as many as fit the budget */
    uint64_t mem_limit_bytes;  /* 0 = what the machine offers */
    smoe_kv_type kv_type;
    uint32_t n_workers;        /* reads in flight at once; 0 = what is fastest here */
    const char *io;            /* uring or threads, direct or buffered, or one of each as in
                                * "uring,direct", refused where it cannot be had; NULL = what is
                                * fastest here */
    /* Keep a history of the experts used beside the vault, for smoe_session_idle to read ahead. */
    bool prewarm;
    void *ctx;                 /* of the following, which may be NULL */
    /* What was chosen, while opening; later, that the history cannot be written. */
    void (*log)(void *ctx, const char *sentence);
    /* While all experts are loaded, in bytes; false ends it with SMOE_CANCELLED. */
    bool (*load_progress)(void *ctx, uint64_t n_done, uint64_t n_total);
} smoe_engine_params;

typedef struct smoe_engine_info {
    const char *architecture, *lineage, *isa;
    uint32_t n_layer, n_vocab, n_ctx, n_ctx_train, n_expert, n_expert_used, n_threads;
    uint32_t n_ring;           /* slots actually made */
    uint32_t n_batch;          /* tokens in one pass of prefill, at most */
    uint64_t n_records, record_bytes, scout_bytes, kv_bytes, scratch_bytes;
    uint64_t limit_bytes;      /* the budget that all of it keeps */
    const int32_t *eos_ids;    /* the checkpoint's; owned by the engine */
    size_t n_eos_ids;
} smoe_engine_info;

smoe_status smoe_engine_open(const smoe_engine_params *params, smoe_engine **out, smoe_err *err);
void smoe_engine_close(smoe_engine *engine);
const smoe_engine_info *smoe_engine_get_info(const smoe_engine *engine);

/* Design A3. Defaults: 0.6, 0.95, 50, 1.1, and none of the others. */
typedef struct smoe_sampling {
    float temperature; /* below 1e-4: greedy */
    float top_p;
    uint32_t top_k;    /* 1 .. 1024 */
    float rep_penalty; /* 1 = none */
    float presence_penalty, frequency_penalty; /* 0 = none; over what this request generated */
    float min_p;       /* 0 .. 1, of the likeliest token's probability; 0 = none */
} smoe_sampling;

smoe_sampling smoe_sampling_defaults(void);

typedef struct smoe_session_params {
    uint64_t seed;            /* 1337 by default */
    uint32_t max_suffix;      /* 0 = the context */
    const int32_t *eos_ids;   /* NULL = the checkpoint's */
    size_t n_eos_ids;
    bool instrument;          /* fill smoe_result.times */
    uint32_t n_spec;          /* experts to read ahead per layer, by a guess; 0 = none */
} smoe_session_params;

smoe_status smoe_session_new(smoe_engine *engine, const smoe_session_params *params,
                             smoe_session **out, smoe_err *err);
void smoe_session_free(smoe_session *session);
void smoe_session_reset(smoe_session *session); /* drops the stream and its KV cache */

typedef struct smoe_request {
    const int32_t *ids;       /* the whole conversation */
    size_t n_ids;
    uint32_t max_tokens;      /* 1 .. n_ctx; generation also stops where the context ends */
    smoe_sampling sampling;
    bool has_seed;
    uint64_t seed;            /* for this request only; the session's generator is not advanced */
    bool has_logprobs;        /* the logprobs event follows each token */
    uint32_t n_top_logprobs;  /* 0 .. SMOE_MAX_TOP_LOGPROBS */
} smoe_request;

/* All may be NULL. A token callback that returns false cancels. `cancelled` is asked at least once
 * per layer and returns true to end the request (then fin = cancel). */
typedef struct smoe_events {
    void *ctx;
    bool (*token)(void *ctx, int32_t id);
    /* prefill, in tokens of the new suffix */
    void (*progress)(void *ctx, size_t done, size_t total);
    bool (*cancelled)(void *ctx);
    void (*logprobs)(void *ctx, const smoe_logprobs *logprobs); /* of the token just given */
} smoe_events;

typedef enum smoe_fin { SMOE_FIN_STOP, SMOE_FIN_LENGTH, SMOE_FIN_CANCEL } smoe_fin;

/* Where the time of a request went, prefill and decode together. */
typedef struct smoe_times {
    uint64_t attention_ns, router_ns, experts_ns, wait_ns, head_ns; /* wait: for the drive */
} smoe_times;

typedef struct smoe_result {
    smoe_fin fin;
    uint32_t n_prompt;     /* ids in the request */
    uint32_t n_cached;     /* of these, found in the KV cache */
    uint32_t n_generated;  /* tokens emitted (end tokens are not emitted) */
    uint64_t prefill_ns, decode_ns;
    /* ring look-ups of this request, and those served from RAM */
    uint64_t n_expert_acquires, n_expert_hits;
    uint64_t n_evictions;
    uint64_t bytes_read, read_ns;  /* read_ns: while at least one read was under way */
    /* experts read ahead by a guess or a hint; of these used, and given up unused */
    uint64_t n_guessed, n_guesses_used, n_guesses_wasted;
    /* experts read by smoe_session_idle before this request; of all such, used and given up unused
     * by this request */
    uint64_t n_prewarmed, n_prewarmed_used, n_prewarmed_wasted;
    smoe_times times;         /* zero unless the session is instrumented */
    uint64_t n_decode_allocs; /* heap allocations made while decoding: always 0 */
} smoe_result;

/* SMOE_EMPTY, SMOE_RANGE (id, max_tokens or n_top_logprobs), SMOE_OVERFLOW, SMOE_SUFFIX before
 * anything is touched; any other failure leaves the stream valid (what was computed stays usable).
 */
smoe_status smoe_session_generate(smoe_session *session, const smoe_request *request,
                                  const smoe_events *events, smoe_result *result, smoe_err *err);

/* While no request runs: does a little of what makes the next one faster, without waiting for the
 * drive, and returns in how many milliseconds to call it again; -1 = not before the next request.
 * No result depends on it. */
int smoe_session_idle(smoe_session *session);

/* Logits of every position of ids, from a fresh stream: row is called n_ids times in order with
 * n_vocab floats. For smoe eval. */
typedef smoe_status smoe_logits_row(void *ctx, size_t position, const float *logits, smoe_err *err);
smoe_status smoe_session_logits(smoe_session *session, const int32_t *ids, size_t n_ids,
                                smoe_logits_row *row, void *ctx, smoe_err *err);

#endif
