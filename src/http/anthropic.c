/* anthropic.c: POST /v1/messages and /v1/messages/count_tokens: requests, and how replies are
 * worded.
 *
 * A streamed reply is a list of blocks, each opened, filled and closed by events of its own; the
 * state says which block is open. */
#include "http/anthropic.h"

#include <stdio.h>

#include "base/mem.h"

enum { STOPS_MAX_BYTES = 1 << 17 };

enum block { BLOCK_NONE, BLOCK_THINKING, BLOCK_TEXT, BLOCK_TOOL };

typedef struct message_state {
    enum block open;
    uint32_t n_blocks;   /* that were opened */
    uint32_t max_tokens; /* of the request; 0 = none given */
    buf stops[HTTP_MAX_STOPS];
} message_state;

/* ---- requests ---- */

static void free_state(void *opaque)
{
    message_state *state = opaque;
    for (size_t i = 0; state != NULL && i < HTTP_MAX_STOPS; i++) {
        buf_fini(&state->stops[i]);
    }
    mem_free(state);
}

static bool read_stops(const json_value *stops, http_request *request, message_state *state,
                       http_error *error)
{
    if (!jr_is_null(stops) && jr_kind(stops) != JSON_KIND_ARRAY) {
        return http_refuse(error, HTTP_BAD_REQUEST, "stop_sequences",
                           "stop_sequences must be an array, found %s", jr_kind_name(stops));
    }
    size_t n = jr_is_null(stops) ? 0 : jr_len(stops);
    if (n > HTTP_MAX_STOPS) {
        return http_refuse(error, HTTP_BAD_REQUEST, "stop_sequences",
                           "stop_sequences may hold %d strings at most, found %zu",
                           HTTP_MAX_STOPS, n);
    }
    for (size_t i = 0; i < n; i++) {
        slice text;
        if (!jr_string(jr_at(stops, i), &text) || text.len == 0) {
            return http_refuse(error, HTTP_BAD_REQUEST, "stop_sequences",
                               "stop_sequences[%zu] must be a string that is not empty", i);
        }
        buf_init(&state->stops[i], STOPS_MAX_BYTES);
        if (!field_append(&request->stops[i], text, error) ||
            !field_append(&state->stops[i], text, error)) {
            return false;
        }
        request->n_stops++;
    }
    return true;
}

static bool read_sampling(const json_value *body, http_sampling *s, http_error *error)
{
    int64_t k = 0;
    if (!field_number(body, "temperature", 0, 100, &s->temperature, &s->has_temperature, error) ||
        !field_number(body, "top_p", 0, 1, &s->top_p, &s->has_top_p, error) ||
        !field_int(body, "top_k", 0, INT64_MAX, &k, &s->has_top_k, error)) {
        return false;
    }
    s->top_k = k < 1 || k > 1024 ? 1024 : (uint32_t)k;
    s->has_rep_penalty = true; /* the API has none, and code repeats itself */
    s->rep_penalty = 1;
    return true;
}

/* What would constrain the answer, or bring in what is not here. */
static bool refuse_unsupported(const json_value *body, http_error *error)
{
    static const char *const names[] = {"mcp_servers", "output_format", "container", NULL};
    if (!field_is_default(jr_get(jr_get(body, "output_config"), "format"))) {
        return http_refuse(error, HTTP_BAD_REQUEST, "output_config.format",
                           "output_config.format would constrain the answer to a schema, which is "
                           "not supported; leave it out");
    }
    return fields_refuse(body, names, error);
}

static bool read_body(const json_value *body, http_request *request, message_state *state,
                      http_error *error)
{
    int64_t max_tokens = 0;
    slice model = {0};
    request->is_chat = true;
    if (!field_string(body, "model", &model, error) ||
        !field_append(&request->model, model, error) ||
        !field_int(body, "max_tokens", 1, INT64_MAX, &max_tokens, NULL, error) ||
        !field_bool(body, "stream", &request->stream, error)) {
        return false;
    }
    request->max_tokens = max_tokens > UINT32_MAX ? UINT32_MAX : (uint32_t)max_tokens;
    state->max_tokens = request->max_tokens;
    return read_sampling(body, &request->sampling, error) &&
           read_stops(jr_get(body, "stop_sequences"), request, state, error) &&
           anthropic_messages(body, &request->messages, error) &&
           anthropic_tools(body, request, error) && refuse_unsupported(body, error);
}

static bool parse(slice text, http_request *request, void **opaque, http_error *error)
{
    json_value *body = NULL;
    message_state *state = mem_calloc(1, sizeof *state);
    *opaque = state;
    if (state == NULL) {
        return http_refuse(error, HTTP_INTERNAL, NULL, "out of memory");
    }
    bool ok = fields_parse(text, &body, error) && read_body(body, request, state, error);
    jr_free(body);
    return ok;
}

/* ---- parts of replies ---- */

/* The server's own errors: {"type":"error","error":{"type","message"}}. Agents know by the sentence
 * that a prompt is too long, so it is worded as Anthropic words it. */
static void put_error(json_writer *w, const http_error *error)
{
    static const char *const types[] = {
        [HTTP_BAD_REQUEST] = "invalid_request_error",
        [HTTP_CONTEXT_LENGTH] = "invalid_request_error",
        [HTTP_UNAUTHORIZED] = "authentication_error",
        [HTTP_FORBIDDEN] = "permission_error",
        [HTTP_NO_SUCH_MODEL] = "not_found_error",
        [HTTP_NO_SUCH_PATH] = "not_found_error",
        [HTTP_WRONG_METHOD] = "invalid_request_error",
        [HTTP_TOO_LARGE] = "request_too_large",
        [HTTP_QUEUE_FULL] = "rate_limit_error",
        [HTTP_INTERNAL] = "api_error",
        [HTTP_NOT_IMPLEMENTED] = "invalid_request_error",
        [HTTP_UNAVAILABLE] = "overloaded_error",
        [HTTP_TIMED_OUT] = "timeout_error",
    };
    char too_long[128];
    snprintf(too_long, sizeof too_long, "prompt is too long: %llu tokens > %llu maximum",
             (unsigned long long)error->n_prompt, (unsigned long long)error->n_ctx);
    jw_begin_object(w);
    jw_key(w, "type");
    jw_cstr(w, "error");
    jw_key(w, "error");
    jw_begin_object(w);
    jw_key(w, "type");
    jw_cstr(w, types[error->kind]);
    jw_key(w, "message");
    jw_cstr(w, error->kind == HTTP_CONTEXT_LENGTH ? too_long : error->text);
    jw_end_object(w);
    jw_end_object(w);
}

static smoe_status write_error(const http_error *error, buf *out, smoe_err *err)
{
    json_writer w;
    jw_init(&w, out);
    put_error(&w, error);
    return jw_finish(&w, err);
}

/* Tokens found computed are no input tokens there. Nothing is paid for being kept. */
static void put_usage(json_writer *w, const http_end *end)
{
    jw_key(w, "usage");
    jw_begin_object(w);
    jw_key(w, "input_tokens");
    jw_uint(w, end->n_prompt - end->n_cached);
    jw_key(w, "cache_creation_input_tokens");
    jw_uint(w, 0);
    jw_key(w, "cache_read_input_tokens");
    jw_uint(w, end->n_cached);
    jw_key(w, "output_tokens");
    jw_uint(w, end->n_generated);
    jw_key(w, "output_tokens_details");
    jw_begin_object(w);
    jw_key(w, "thinking_tokens");
    jw_uint(w, end->n_reasoning);
    jw_end_object(w);
    jw_end_object(w);
}

static void put_stop(json_writer *w, const message_state *state, const http_end *end)
{
    static const char *const reasons[] = {
        [HTTP_FIN_STOP] = "end_turn",        [HTTP_FIN_STOP_STRING] = "stop_sequence",
        [HTTP_FIN_LENGTH] = "max_tokens",    [HTTP_FIN_TOOLS] = "tool_use",
        [HTTP_FIN_CANCELLED] = "end_turn",
    };
    jw_key(w, "stop_reason");
    if (end != NULL && end->fin == HTTP_FIN_LENGTH &&
        (state->max_tokens == 0 || end->n_generated < state->max_tokens)) {
        jw_cstr(w, "model_context_window_exceeded");
    } else if (end != NULL) {
        jw_cstr(w, reasons[end->fin]);
    } else {
        jw_null(w);
    }
    jw_key(w, "stop_sequence");
    if (end != NULL && end->fin == HTTP_FIN_STOP_STRING) {
        jw_string(w, buf_slice(&state->stops[end->i_stop]));
    } else {
        jw_null(w);
    }
}

/* Up to the content. */
static void put_head(json_writer *w, const http_reply *reply)
{
    char id[64];
    snprintf(id, sizeof id, "msg_%s", reply->id);
    jw_begin_object(w);
    jw_key(w, "id");
    jw_cstr(w, id);
    jw_key(w, "type");
    jw_cstr(w, "message");
    jw_key(w, "role");
    jw_cstr(w, "assistant");
    jw_key(w, "model");
    jw_cstr(w, reply->model);
    jw_key(w, "content");
    jw_begin_array(w);
}

/* The type of a block, and what identifies a call. */
static void begin_block(json_writer *w, enum block kind, const http_reply *reply, uint32_t i_call,
                        slice name)
{
    static const char *const types[] = {
        [BLOCK_THINKING] = "thinking", [BLOCK_TEXT] = "text", [BLOCK_TOOL] = "tool_use"};
    char id[64];
    jw_begin_object(w);
    jw_key(w, "type");
    jw_cstr(w, types[kind]);
    if (kind == BLOCK_TOOL) {
        snprintf(id, sizeof id, "toolu_%.24s%u", reply->id, i_call);
        jw_key(w, "id");
        jw_cstr(w, id);
        jw_key(w, "name");
        jw_string(w, name);
    }
}

/* Clients want a signature on each thinking block; nothing here checks one. */
static const char signature[] = "unsigned";

static void put_thinking(json_writer *w, slice text, const char *signed_by)
{
    jw_key(w, "thinking");
    jw_string(w, text);
    jw_key(w, "signature");
    jw_cstr(w, signed_by);
}

/* ---- streams ---- */

/* "event: NAME", and the beginning of its data with the type. */
static smoe_status begin_event(json_writer *w, buf *out, const char *name, smoe_err *err)
{
    TRY(buf_printf(out, err, "event: %s\ndata: ", name));
    jw_init(w, out);
    jw_begin_object(w);
    jw_key(w, "type");
    jw_cstr(w, name);
    return SMOE_OK;
}

static smoe_status end_event(json_writer *w, buf *out, smoe_err *err)
{
    jw_end_object(w);
    TRY(jw_finish(w, err));
    return buf_puts(out, "\n\n", err);
}

static smoe_status put_message_start(const http_reply *reply, buf *out, smoe_err *err)
{
    const http_end none = {.n_prompt = reply->n_prompt}; /* what is cached is known at the end */
    json_writer w;
    TRY(begin_event(&w, out, "message_start", err));
    jw_key(&w, "message");
    put_head(&w, reply);
    jw_end_array(&w);
    put_stop(&w, NULL, NULL);
    put_usage(&w, &none);
    jw_end_object(&w);
    return end_event(&w, out, err);
}

/* With the progress of the prompt, which Anthropic's own pings do not have. */
static smoe_status put_ping(const http_event *e, buf *out, smoe_err *err)
{
    json_writer w;
    TRY(begin_event(&w, out, "ping", err));
    if (e->kind == HTTP_EVENT_WAITING && e->total > 0) {
        members_progress(&w, e);
    }
    return end_event(&w, out, err);
}

static smoe_status put_delta(const message_state *state, const char *type, const char *field,
                             slice text, buf *out, smoe_err *err)
{
    json_writer w;
    TRY(begin_event(&w, out, "content_block_delta", err));
    jw_key(&w, "index");
    jw_uint(&w, state->n_blocks - 1);
    jw_key(&w, "delta");
    jw_begin_object(&w);
    jw_key(&w, "type");
    jw_cstr(&w, type);
    jw_key(&w, field);
    jw_string(&w, text);
    jw_end_object(&w);
    return end_event(&w, out, err);
}

static smoe_status close_block(message_state *state, buf *out, smoe_err *err)
{
    json_writer w;
    if (state->open == BLOCK_NONE) {
        return SMOE_OK;
    }
    if (state->open == BLOCK_THINKING) {
        TRY(put_delta(state, "signature_delta", "signature", slice_from(signature), out, err));
    }
    state->open = BLOCK_NONE;
    TRY(begin_event(&w, out, "content_block_stop", err));
    jw_key(&w, "index");
    jw_uint(&w, state->n_blocks - 1);
    return end_event(&w, out, err);
}

static smoe_status open_block(message_state *state, enum block kind, const http_reply *reply,
                              const http_event *e, buf *out, smoe_err *err)
{
    json_writer w;
    TRY(close_block(state, out, err));
    TRY(begin_event(&w, out, "content_block_start", err));
    jw_key(&w, "index");
    jw_uint(&w, state->n_blocks);
    jw_key(&w, "content_block");
    begin_block(&w, kind, reply, e->index, e->text);
    if (kind == BLOCK_THINKING) {
        put_thinking(&w, slice_from(""), "");
    } else if (kind == BLOCK_TEXT) {
        jw_key(&w, "text");
        jw_cstr(&w, "");
    } else {
        jw_key(&w, "input");
        jw_begin_object(&w);
        jw_end_object(&w);
    }
    jw_end_object(&w);
    TRY(end_event(&w, out, err));
    state->open = kind;
    return state->n_blocks++ == 0 ? put_ping(e, out, err) : SMOE_OK;
}

static smoe_status put_piece(message_state *state, enum block kind, const http_reply *reply,
                             const http_event *e, buf *out, smoe_err *err)
{
    bool is_text = kind == BLOCK_TEXT;
    if (state->open != kind) {
        TRY(open_block(state, kind, reply, e, out, err));
    }
    return put_delta(state, is_text ? "text_delta" : "thinking_delta",
                     is_text ? "text" : "thinking", e->text, out, err);
}

static smoe_status put_end(message_state *state, const http_end *end, buf *out, smoe_err *err)
{
    json_writer w;
    TRY(close_block(state, out, err));
    TRY(begin_event(&w, out, "message_delta", err));
    jw_key(&w, "delta");
    jw_begin_object(&w);
    put_stop(&w, state, end);
    jw_end_object(&w);
    put_usage(&w, end);
    TRY(end_event(&w, out, err));
    TRY(begin_event(&w, out, "message_stop", err));
    return end_event(&w, out, err);
}

static smoe_status stream(void *opaque, const http_reply *reply, const http_event *e, buf *out,
                          smoe_err *err)
{
    message_state *state = opaque;
    switch (e->kind) {
    case HTTP_EVENT_BEGIN:
        return put_message_start(reply, out, err);
    case HTTP_EVENT_WAITING:
        return put_ping(e, out, err);
    case HTTP_EVENT_REASONING:
        return put_piece(state, BLOCK_THINKING, reply, e, out, err);
    case HTTP_EVENT_CONTENT:
        return put_piece(state, BLOCK_TEXT, reply, e, out, err);
    case HTTP_EVENT_TOOL_BEGIN:
        return open_block(state, BLOCK_TOOL, reply, e, out, err);
    case HTTP_EVENT_TOOL_INPUT:
        return put_delta(state, "input_json_delta", "partial_json", e->text, out, err);
    case HTTP_EVENT_TOOL_END:
        return close_block(state, out, err);
    case HTTP_EVENT_LOGPROBS: /* this API has none */
        return SMOE_OK;
    case HTTP_EVENT_END:
        return put_end(state, e->end, out, err);
    case HTTP_EVENT_ERROR:
        TRY(buf_puts(out, "event: error\ndata: ", err));
        TRY(write_error(e->error, out, err));
        return buf_puts(out, "\n\n", err);
    }
    return SMOE_OK;
}

/* ---- whole replies ---- */

/* The text is an object that was checked; the API wants the object itself. */
static smoe_status put_input(json_writer *w, slice arguments, smoe_err *err)
{
    json_value *input = NULL;
    TRY(jr_parse(arguments, "the arguments of a call", &input, err));
    jw_key(w, "input");
    jw_value(w, input);
    jr_free(input);
    return SMOE_OK;
}

static smoe_status whole(void *opaque, const http_reply *reply, const http_answer *answer, buf *out,
                         smoe_err *err)
{
    const message_state *state = opaque;
    json_writer w;
    jw_init(&w, out);
    put_head(&w, reply);
    if (answer->reasoning.len > 0) {
        begin_block(&w, BLOCK_THINKING, reply, 0, (slice){0});
        put_thinking(&w, buf_slice(&answer->reasoning), signature);
        jw_end_object(&w);
    }
    if (answer->content.len > 0) {
        begin_block(&w, BLOCK_TEXT, reply, 0, (slice){0});
        jw_key(&w, "text");
        jw_string(&w, buf_slice(&answer->content));
        jw_end_object(&w);
    }
    for (size_t i = 0; i < answer->n_calls; i++) {
        begin_block(&w, BLOCK_TOOL, reply, (uint32_t)i, buf_slice(&answer->calls[i].name));
        TRY(put_input(&w, buf_slice(&answer->calls[i].arguments), err));
        jw_end_object(&w);
    }
    jw_end_array(&w);
    put_stop(&w, state, &answer->end);
    put_usage(&w, &answer->end);
    jw_end_object(&w);
    return jw_finish(&w, err);
}

static smoe_status count(void *state, const http_reply *reply, buf *out, smoe_err *err)
{
    (void)state;
    return buf_printf(out, err, "{\"input_tokens\":%llu}", (unsigned long long)reply->n_prompt);
}

const http_format anthropic_format = {
    .path = "/v1/messages",
    .parse = parse,
    .free_state = free_state,
    .stream = stream,
    .whole = whole,
    .error = write_error,
};

const http_format anthropic_count_format = {
    .path = "/v1/messages/count_tokens",
    .parse = parse,
    .free_state = free_state,
    .stream = stream,
    .whole = whole,
    .error = write_error,
    .count = count,
};
