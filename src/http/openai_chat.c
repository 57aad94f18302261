/* openai_chat.c: POST /v1/chat/completions. */
#include <stdio.h>

#include "base/mem.h"
#include "http/openai.h"

typedef struct chat_state {
    bool include_usage;   /* a last chunk with the usage */
    bool return_progress; /* chunks with prompt_progress, as llama.cpp sends them */
    http_answer waiting;  /* its log-probabilities go with the next piece of content */
} chat_state;

static bool read_format(const json_value *body, http_error *error)
{
    const json_value *format = jr_get(body, "response_format");
    slice type = {0};
    if (jr_is_null(format)) {
        return true;
    }
    if (!jr_string(jr_get(format, "type"), &type) ||
        (!slice_is(type, "text") && !slice_is(type, "json_object"))) {
        return http_refuse(error, HTTP_BAD_REQUEST, "response_format",
                           "response_format.type must be text or json_object; output is not "
                           "constrained to a schema here");
    }
    return true;
}

static bool read_tools(const json_value *body, http_request *request, http_error *error)
{
    const json_value *tools = jr_get(body, "tools");
    slice name;
    if (!jr_is_null(tools) && jr_kind(tools) != JSON_KIND_ARRAY) {
        return http_refuse(error, HTTP_BAD_REQUEST, "tools", "tools must be an array, found %s",
                           jr_kind_name(tools));
    }
    for (size_t i = 0; i < jr_len(tools); i++) {
        char param[32];
        snprintf(param, sizeof param, "tools[%zu]", i);
        if (!jr_string(jr_get(jr_get(jr_at(tools, i), "function"), "name"), &name)) {
            return http_refuse(error, HTTP_BAD_REQUEST, param,
                               "%s must be of type function, with a function and its name", param);
        }
    }
    return openai_tool_choice(body, jr_len(tools) > 0, request, error);
}

/* chat_template_kwargs and tools become variables of the template. */
static bool read_variables(const json_value *body, http_request *request, http_error *error)
{
    const json_value *kwargs = jr_get(body, "chat_template_kwargs");
    smoe_err err;
    json_writer w;
    if (!jr_is_null(kwargs) && jr_kind(kwargs) != JSON_KIND_OBJECT) {
        return http_refuse(error, HTTP_BAD_REQUEST, "chat_template_kwargs",
                           "chat_template_kwargs must be an object, found %s",
                           jr_kind_name(kwargs));
    }
    jw_init(&w, &request->variables);
    jw_begin_object(&w);
    for (void *it = jr_iter(kwargs); it != NULL; it = jr_next(kwargs, it)) {
        slice key = jr_iter_key(it);
        if (slice_is(key, "messages") || slice_is(key, "tools")) {
            return http_refuse(error, HTTP_BAD_REQUEST, "chat_template_kwargs",
                               "chat_template_kwargs may not hold %s", key.data);
        }
        jw_key_slice(&w, key);
        jw_value(&w, jr_iter_value(it));
    }
    if (request->has_tools) {
        jw_key(&w, "tools");
        jw_value(&w, jr_get(body, "tools"));
    }
    jw_end_object(&w);
    return field_made(jw_finish(&w, &err), &err, error);
}

static bool read_stream_options(const json_value *body, chat_state *state, http_error *error)
{
    return openai_include_usage(body, &state->include_usage, error) &&
           field_bool(body, "return_progress", &state->return_progress, error);
}

static bool read_logprobs(const json_value *body, http_request *request, http_error *error)
{
    int64_t n_top = 0;
    if (!field_bool(body, "logprobs", &request->has_logprobs, error) ||
        !field_int(body, "top_logprobs", 0, SMOE_MAX_TOP_LOGPROBS, &n_top, NULL, error)) {
        return false;
    }
    request->n_top_logprobs = (uint32_t)n_top;
    return n_top == 0 || request->has_logprobs ||
           http_refuse(error, HTTP_BAD_REQUEST, "top_logprobs", "top_logprobs needs logprobs");
}

static bool read_body(const json_value *body, http_request *request, chat_state *state,
                      http_error *error)
{
    request->is_chat = true;
    return openai_common(body, request, error) &&
           openai_messages(jr_get(body, "messages"), &request->messages, error) &&
           read_format(body, error) && read_tools(body, request, error) &&
           read_variables(body, request, error) &&
           read_logprobs(body, request, error) && read_stream_options(body, state, error);
}

static void free_state(void *opaque)
{
    chat_state *state = opaque;
    if (state != NULL) {
        http_answer_fini(&state->waiting);
        mem_free(state);
    }
}

static bool parse(slice text, http_request *request, void **state, http_error *error)
{
    json_value *body = NULL;
    chat_state *s = *state = mem_calloc(1, sizeof *s);
    if (s == NULL) {
        return http_refuse(error, HTTP_INTERNAL, NULL, "out of memory");
    }
    http_answer_init(&s->waiting);
    bool ok = fields_parse(text, &body, error) && read_body(body, request, s, error);
    jr_free(body);
    return ok;
}

/* ---- replies ---- */

static void put_call_id(json_writer *w, const http_reply *reply, uint32_t index)
{
    char id[64];
    snprintf(id, sizeof id, "call_%.24s%u", reply->id, index);
    jw_key(w, "id");
    jw_cstr(w, id);
}

static void put_delta(json_writer *w, const http_reply *reply, const http_event *e)
{
    jw_begin_object(w);
    switch (e->kind) {
    case HTTP_EVENT_BEGIN:
        jw_key(w, "role");
        jw_cstr(w, "assistant");
        jw_key(w, "content");
        jw_cstr(w, "");
        break;
    case HTTP_EVENT_CONTENT:
    case HTTP_EVENT_REASONING:
        jw_key(w, e->kind == HTTP_EVENT_CONTENT ? "content" : "reasoning_content");
        jw_string(w, e->text);
        break;
    case HTTP_EVENT_TOOL_BEGIN:
    case HTTP_EVENT_TOOL_INPUT:
        jw_key(w, "tool_calls");
        jw_begin_array(w);
        jw_begin_object(w);
        jw_key(w, "index");
        jw_uint(w, e->index);
        if (e->kind == HTTP_EVENT_TOOL_BEGIN) {
            put_call_id(w, reply, e->index);
            members_function(w);
            jw_key(w, "name");
            jw_string(w, e->text);
        } else {
            jw_key(w, "function");
            jw_begin_object(w);
        }
        jw_key(w, "arguments");
        jw_string(w, e->kind == HTTP_EVENT_TOOL_INPUT ? e->text : (slice){"", 0});
        jw_end_object(w);
        jw_end_object(w);
        jw_end_array(w);
        break;
    default:
        break;
    }
    jw_end_object(w);
}

/* Opens a chunk, up to its first choice. */
static smoe_status begin_chunk(json_writer *w, const http_reply *reply, buf *out, smoe_err *err)
{
    TRY(openai_sse_begin(out, err));
    jw_init(w, out);
    openai_head(w, reply, "chatcmpl-", "chat.completion.chunk");
    jw_key(w, "choices");
    jw_begin_array(w);
    return SMOE_OK;
}

/* One chat.completion.chunk; end: the one with the finish_reason. */
static smoe_status put_chunk(chat_state *state, const http_reply *reply, const http_event *e,
                             buf *out, smoe_err *err)
{
    bool takes_logprobs = e->kind == HTTP_EVENT_CONTENT || e->kind == HTTP_EVENT_END;
    json_writer w;
    TRY(begin_chunk(&w, reply, out, err));
    jw_begin_object(&w);
    jw_key(&w, "index");
    jw_int(&w, 0);
    jw_key(&w, "delta");
    put_delta(&w, reply, e);
    openai_logprobs(&w, reply, state->waiting.logprobs,
                    takes_logprobs ? state->waiting.n_logprobs : 0);
    jw_key(&w, "finish_reason");
    if (e->kind == HTTP_EVENT_END) {
        jw_cstr(&w, openai_finish_reason(e->end->fin));
    } else {
        jw_null(&w);
    }
    jw_end_object(&w);
    jw_end_array(&w);
    if (e->kind == HTTP_EVENT_END) {
        openai_timings(&w, e->end);
    }
    jw_end_object(&w);
    TRY(jw_finish(&w, err));
    if (takes_logprobs) {
        http_answer_fini(&state->waiting);
        http_answer_init(&state->waiting);
    }
    return openai_sse_end(out, err);
}

/* A chunk without a choice: usage, or the progress of the prompt. */
static smoe_status put_side_chunk(const http_reply *reply, const http_event *e, buf *out,
                                  smoe_err *err)
{
    json_writer w;
    TRY(begin_chunk(&w, reply, out, err));
    jw_end_array(&w);
    if (e->kind == HTTP_EVENT_END) {
        openai_usage(&w, e->end);
    } else {
        members_progress(&w, e);
    }
    jw_end_object(&w);
    TRY(jw_finish(&w, err));
    return openai_sse_end(out, err);
}

static smoe_status stream(void *opaque, const http_reply *reply, const http_event *e, buf *out,
                          smoe_err *err)
{
    chat_state *state = opaque;
    switch (e->kind) {
    case HTTP_EVENT_WAITING:
        return state->return_progress && e->total > 0 ? put_side_chunk(reply, e, out, err)
                                                      : openai_sse_waiting(e, out, err);
    case HTTP_EVENT_TOOL_END:
        return SMOE_OK;
    case HTTP_EVENT_LOGPROBS:
        return http_answer_add(&state->waiting, e, err);
    case HTTP_EVENT_ERROR:
        return openai_sse_error(e->error, out, err);
    case HTTP_EVENT_END:
        TRY(put_chunk(state, reply, e, out, err));
        if (state->include_usage) {
            TRY(put_side_chunk(reply, e, out, err));
        }
        return buf_puts(out, "data: [DONE]\n\n", err);
    default:
        return put_chunk(state, reply, e, out, err);
    }
}

static void put_message(json_writer *w, const http_reply *reply, const http_answer *answer)
{
    jw_key(w, "message");
    jw_begin_object(w);
    jw_key(w, "role");
    jw_cstr(w, "assistant");
    jw_key(w, "content");
    if (answer->content.len == 0 && answer->n_calls > 0) {
        jw_null(w);
    } else {
        jw_string(w, buf_slice(&answer->content));
    }
    jw_key(w, "refusal");
    jw_null(w);
    if (answer->reasoning.len > 0) {
        jw_key(w, "reasoning_content");
        jw_string(w, buf_slice(&answer->reasoning));
    }
    if (answer->n_calls > 0) {
        jw_key(w, "tool_calls");
        jw_begin_array(w);
        for (size_t i = 0; i < answer->n_calls; i++) {
            jw_begin_object(w);
            put_call_id(w, reply, (uint32_t)i);
            members_function(w);
            jw_key(w, "name");
            jw_string(w, buf_slice(&answer->calls[i].name));
            jw_key(w, "arguments");
            jw_string(w, buf_slice(&answer->calls[i].arguments));
            jw_end_object(w);
            jw_end_object(w);
        }
        jw_end_array(w);
    }
    jw_end_object(w);
}

static smoe_status whole(void *state, const http_reply *reply, const http_answer *answer, buf *out,
                         smoe_err *err)
{
    json_writer w;
    (void)state;
    jw_init(&w, out);
    openai_head(&w, reply, "chatcmpl-", "chat.completion");
    jw_key(&w, "choices");
    jw_begin_array(&w);
    jw_begin_object(&w);
    jw_key(&w, "index");
    jw_int(&w, 0);
    put_message(&w, reply, answer);
    openai_logprobs(&w, reply, answer->logprobs, answer->n_logprobs);
    jw_key(&w, "finish_reason");
    jw_cstr(&w, openai_finish_reason(answer->end.fin));
    jw_end_object(&w);
    jw_end_array(&w);
    openai_usage(&w, &answer->end);
    openai_timings(&w, &answer->end);
    jw_end_object(&w);
    return jw_finish(&w, err);
}

const http_format openai_chat_format = {
    .path = "/v1/chat/completions",
    .parse = parse,
    .free_state = free_state,
    .stream = stream,
    .whole = whole,
    .error = openai_error,
};
