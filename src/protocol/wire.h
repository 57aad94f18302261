/* wire.h: the grammar of the line protocol, and nothing else: no files, no processes, no engine.
 *
 * Owns parsing of request lines and of the reply stream, and the spelling of both. Refuses every
 * request that is not exactly in the grammar (docs/protocol.md), with a sentence; whether ids exist
 * and fit is the engine's to say. The one idea: a reply is a stream of fields separated by white
 * space, so a reader that knows only numbers and sentinels can skip every field that holds a '='.
 */
#ifndef PROTOCOL_WIRE_H
#define PROTOCOL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "smoe/protocol.h"

enum { WIRE_TOP_K_MAX = 1024 };

enum wire_verb { WIRE_GEN, WIRE_RESET, WIRE_CANCEL };

typedef struct wire_request {
    enum wire_verb verb;
    uint32_t max_tokens;
    bool has_temperature, has_top_p, has_top_k, has_rep_penalty, has_seed;
    bool has_min_p, has_presence_penalty, has_frequency_penalty, has_logprobs;
    float temperature, top_p, rep_penalty, min_p, presence_penalty, frequency_penalty;
    uint32_t top_k; /* already capped at WIRE_TOP_K_MAX */
    uint32_t n_top_logprobs;
    uint64_t seed;
    int32_t *ids;   /* owned, reused from line to line */
    size_t n_ids, cap_ids;
} wire_request;

void wire_request_init(wire_request *r);
void wire_request_fini(wire_request *r);

/* One line without its '\n' (one trailing '\r' is dropped). SMOE_RANGE: malformed or out of range;
 * SMOE_EMPTY: a good GEN line without ids; SMOE_NOMEM. */
smoe_status wire_parse_request(slice line, wire_request *r, smoe_err *err);
bool wire_is_cancel(slice line);

/* The name inside <<ERR ...>> for a failed request. */
const char *wire_error_name(smoe_status status);

/* What stands between the ids and <<DONE>>. */
typedef struct wire_counters {
    const char *fin;
    uint64_t n_generated, n_prompt, n_cached, n_acquires, n_hits;
    uint64_t prefill_ns, decode_ns;
    uint64_t n_evictions, bytes_read, bytes_wasted, read_ns;
    uint64_t scout_bytes, kv_bytes, scratch_bytes, ring_bytes;
} wire_counters;

/* Each writes one complete piece, NUL-terminated, and returns its length; WIRE_PIECE_BYTES
 * suffices. */
enum { WIRE_PIECE_BYTES = 640 };
size_t wire_format_token(char *out, size_t size, int32_t id);
size_t wire_format_logprobs(char *out, size_t size, const smoe_logprobs *logprobs);
size_t wire_format_progress(char *out, size_t size, uint64_t done, uint64_t total);
size_t wire_format_done(char *out, size_t size, const wire_counters *c);
size_t wire_format_error(char *out, size_t size, const char *name);

/* Appends "GEN <max> [overrides] <ids>\n". SMOE_RANGE when overrides would break the line. */
smoe_status wire_format_gen(buf *out, const smoe_client_request *request, smoe_err *err);

/* The reply stream, in whatever pieces it arrives. */
enum { WIRE_FIELD_BYTES = 576 }; /* the longest is lp= with 20 tokens */
typedef struct wire_reader {
    char field[WIRE_FIELD_BYTES]; /* the field that has begun and not ended */
    size_t n_field;
    int32_t last_id;              /* the last token */
    bool in_error;                /* "<<ERR" was read, its name follows */
    smoe_reply reply;             /* counters seen since the last terminal line */
} wire_reader;

void wire_reader_init(wire_reader *r);
/* Takes bytes from the front of *bytes until one event is complete (*got = true and *reply is set)
 * or none are left. SMOE_FORMAT, naming the field, when it is not the protocol. */
smoe_status wire_reader_next(wire_reader *r, slice *bytes, bool *got, smoe_reply *reply,
                             smoe_err *err);

#endif
