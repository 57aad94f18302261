/* openai_completion.c: POST /v1/completions: text or token ids, continued as they are, without a
 * template. */
#include "base/mem.h"
#include "http/openai.h"

typedef struct completion_state {
    bool include_usage;
} completion_state;

static bool read_ids(const json_value *list, http_request *request, http_error *error)
{
    for (size_t i = 0; i < jr_len(list); i++) {
        int64_t id;
        smoe_err err;
        if (!jr_int(jr_at(list, i), &id) || id < 0 || id > INT32_MAX) {
            return http_refuse(error, HTTP_BAD_REQUEST, "prompt",
                               "prompt must be a string or an array of token ids; one prompt per "
                               "request");
        }
        if (!field_made(smoe_ids_push(&request->ids, (int32_t)id, &err), &err, error)) {
            return false;
        }
    }
    return true;
}

static bool read_prompt(const json_value *prompt, http_request *request, http_error *error)
{
    slice text;
    if (jr_kind(prompt) == JSON_KIND_ARRAY && jr_len(prompt) == 1 &&
        jr_kind(jr_at(prompt, 0)) != JSON_KIND_INT) {
        prompt = jr_at(prompt, 0); /* a list of one */
    }
    if (jr_string(prompt, &text)) {
        return field_append(&request->prompt, text, error);
    }
    if (jr_kind(prompt) != JSON_KIND_ARRAY) {
        return http_refuse(error, HTTP_BAD_REQUEST, "prompt",
                           "prompt must be a string or an array of token ids, found %s",
                           jr_kind_name(prompt));
    }
    return read_ids(prompt, request, error);
}

static bool parse(slice text, http_request *request, void **opaque, http_error *error)
{
    static const char *const unsupported[] = {"suffix", "echo", "logprobs", NULL};
    json_value *body = NULL;
    completion_state *state = *opaque = mem_calloc(1, sizeof *state);
    if (state == NULL) {
        return http_refuse(error, HTTP_INTERNAL, NULL, "out of memory");
    }
    bool ok = fields_parse(text, &body, error) && openai_common(body, request, error) &&
              fields_refuse(body, unsupported, error) &&
              read_prompt(jr_get(body, "prompt"), request, error) &&
              openai_include_usage(body, &state->include_usage, error);
    jr_free(body);
    return ok;
}

/* end: NULL while text comes. */
static void put_choice(json_writer *w, slice text, const http_end *end)
{
    jw_key(w, "choices");
    jw_begin_array(w);
    jw_begin_object(w);
    jw_key(w, "text");
    jw_string(w, text);
    jw_key(w, "index");
    jw_int(w, 0);
    jw_key(w, "logprobs");
    jw_null(w);
    jw_key(w, "finish_reason");
    if (end != NULL) {
        jw_cstr(w, openai_finish_reason(end->fin));
    } else {
        jw_null(w);
    }
    jw_end_object(w);
    jw_end_array(w);
}

/* usage: instead of a choice. */
static smoe_status put_chunk(const http_reply *reply, slice text, const http_end *end,
                             const http_end *usage, buf *out, smoe_err *err)
{
    json_writer w;
    TRY(openai_sse_begin(out, err));
    jw_init(&w, out);
    openai_head(&w, reply, "cmpl-", "text_completion");
    if (usage != NULL) {
        jw_key(&w, "choices");
        jw_begin_array(&w);
        jw_end_array(&w);
        openai_usage(&w, usage);
    } else {
        put_choice(&w, text, end);
    }
    jw_end_object(&w);
    TRY(jw_finish(&w, err));
    return openai_sse_end(out, err);
}

static smoe_status stream(void *opaque, const http_reply *reply, const http_event *e, buf *out,
                          smoe_err *err)
{
    const completion_state *state = opaque;
    const slice nothing = {"", 0};
    switch (e->kind) {
    case HTTP_EVENT_CONTENT:
        return put_chunk(reply, e->text, NULL, NULL, out, err);
    case HTTP_EVENT_WAITING:
        return openai_sse_waiting(e, out, err);
    case HTTP_EVENT_ERROR:
        return openai_sse_error(e->error, out, err);
    case HTTP_EVENT_END:
        TRY(put_chunk(reply, nothing, e->end, NULL, out, err));
        if (state->include_usage) {
            TRY(put_chunk(reply, nothing, NULL, e->end, out, err));
        }
        return buf_puts(out, "data: [DONE]\n\n", err);
    default:
        return SMOE_OK;
    }
}

static smoe_status whole(void *state, const http_reply *reply, const http_answer *answer, buf *out,
                         smoe_err *err)
{
    json_writer w;
    (void)state;
    jw_init(&w, out);
    openai_head(&w, reply, "cmpl-", "text_completion");
    put_choice(&w, buf_slice(&answer->content), &answer->end);
    openai_usage(&w, &answer->end);
    openai_timings(&w, &answer->end);
    jw_end_object(&w);
    return jw_finish(&w, err);
}

const http_format openai_completion_format = {
    .path = "/v1/completions",
    .parse = parse,
    .free_state = mem_free,
    .stream = stream,
    .whole = whole,
    .error = openai_error,
};
