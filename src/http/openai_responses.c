/* openai_responses.c: POST /v1/responses, without state: nothing is stored, every request brings
 * its whole input. The reply is a list of items (reasoning, message, function_call) that are
 * streamed one after the other and repeated, complete, at the end. */
#include <stdio.h>

#include "base/mem.h"
#include "http/openai_responses.h"

enum { ITEM_MAX_BYTES = 256 << 20 };

/* ---- state ---- */

static void free_state(void *opaque)
{
    responses_state *s = opaque;
    if (s == NULL) {
        return;
    }
    for (size_t i = 0; i < s->n_items; i++) {
        buf_fini(&s->items[i].text);
        buf_fini(&s->items[i].name);
    }
    mem_free(s->items);
    buf_fini(&s->tools);
    mem_free(s);
}

static bool parse(slice text, http_request *request, void **opaque, http_error *error)
{
    json_value *body = NULL;
    responses_state *s = *opaque = mem_calloc(1, sizeof *s);
    if (s == NULL) {
        return http_refuse(error, HTTP_INTERNAL, NULL, "out of memory");
    }
    buf_init(&s->tools, ITEM_MAX_BYTES);
    bool ok = fields_parse(text, &body, error) && responses_read(body, request, s, error);
    jr_free(body);
    return ok;
}

static smoe_status add_item(responses_state *s, enum item_kind kind, slice name, smoe_err *err)
{
    response_item *items = mem_realloc(s->items, (s->n_items + 1) * sizeof *items);
    if (items == NULL) {
        return err_nomem(err, "a reply's item", sizeof *items);
    }
    s->items = items;
    response_item *item = &items[s->n_items++];
    *item = (response_item){.kind = kind};
    buf_init(&item->text, ITEM_MAX_BYTES);
    buf_init(&item->name, ITEM_MAX_BYTES);
    return buf_append_slice(&item->name, name, err);
}

/* ---- JSON of items and of the whole ---- */

static void put_id(json_writer *w, const char *key, const char *prefix, const http_reply *reply,
                   size_t i)
{
    char id[64];
    snprintf(id, sizeof id, "%s_%s%zu", prefix, reply->id, i);
    jw_key(w, key);
    jw_cstr(w, id);
}

static void put_item_id(json_writer *w, const char *key, const http_reply *reply,
                        const response_item *item, size_t i)
{
    static const char *const prefixes[] = {
        [ITEM_REASONING] = "rs", [ITEM_MESSAGE] = "msg", [ITEM_CALL] = "fc"};
    put_id(w, key, prefixes[item->kind], reply, i);
}

static void put_part(json_writer *w, enum item_kind kind, slice text)
{
    jw_begin_object(w);
    jw_key(w, "type");
    jw_cstr(w, kind == ITEM_MESSAGE ? "output_text" : "reasoning_text");
    jw_key(w, "text");
    jw_string(w, text);
    if (kind == ITEM_MESSAGE) {
        jw_key(w, "annotations");
        jw_begin_array(w);
        jw_end_array(w);
    }
    jw_end_object(w);
}

/* begun: nothing of it is there yet. */
static void put_item(json_writer *w, const http_reply *reply, const response_item *item, size_t i,
                     bool begun)
{
    static const char *const types[] = {[ITEM_REASONING] = "reasoning", [ITEM_MESSAGE] = "message",
                                        [ITEM_CALL] = "function_call"};
    slice text = begun || item->text.len == 0 ? (slice){"", 0} : buf_slice(&item->text);
    jw_begin_object(w);
    put_item_id(w, "id", reply, item, i);
    jw_key(w, "type");
    jw_cstr(w, types[item->kind]);
    jw_key(w, "status");
    jw_cstr(w, begun ? "in_progress" : "completed");
    if (item->kind == ITEM_CALL) {
        put_id(w, "call_id", "call", reply, i);
        jw_key(w, "name");
        jw_string(w, buf_slice(&item->name));
        jw_key(w, "arguments");
        jw_string(w, text);
    } else {
        if (item->kind == ITEM_MESSAGE) {
            jw_key(w, "role");
            jw_cstr(w, "assistant");
        } else {
            jw_key(w, "summary");
            jw_begin_array(w);
            jw_end_array(w);
        }
        jw_key(w, "content");
        jw_begin_array(w);
        if (!begun) {
            put_part(w, item->kind, text);
        }
        jw_end_array(w);
    }
    jw_end_object(w);
}

static void put_usage(json_writer *w, const http_end *end)
{
    jw_key(w, "usage");
    jw_begin_object(w);
    jw_key(w, "input_tokens");
    jw_uint(w, end->n_prompt);
    jw_key(w, "input_tokens_details");
    jw_begin_object(w);
    jw_key(w, "cached_tokens");
    jw_uint(w, end->n_cached);
    jw_end_object(w);
    jw_key(w, "output_tokens");
    jw_uint(w, end->n_generated);
    jw_key(w, "output_tokens_details");
    jw_begin_object(w);
    jw_key(w, "reasoning_tokens");
    jw_uint(w, end->n_reasoning);
    jw_end_object(w);
    jw_key(w, "total_tokens");
    jw_uint(w, end->n_prompt + end->n_generated);
    jw_end_object(w);
}

static void put_null(json_writer *w, const char *key)
{
    jw_key(w, key);
    jw_null(w);
}

/* {"error": {"code", "message"}} of a response that failed, or null. */
static void put_failure(json_writer *w, const http_error *error)
{
    jw_key(w, "error");
    if (error == NULL) {
        jw_null(w);
        return;
    }
    jw_begin_object(w);
    jw_key(w, "code");
    jw_cstr(w, "server_error");
    jw_key(w, "message");
    jw_cstr(w, error->text);
    jw_end_object(w);
}

/* end NULL: it is still being made, or failed when there is an error. */
static smoe_status put_response(json_writer *w, const responses_state *s, const http_reply *reply,
                                const http_end *end, const http_error *error, smoe_err *err)
{
    bool is_cut = end != NULL && end->fin == HTTP_FIN_LENGTH;
    jw_begin_object(w);
    put_id(w, "id", "resp", reply, 0);
    jw_key(w, "object");
    jw_cstr(w, "response");
    jw_key(w, "created_at");
    jw_int(w, reply->created);
    jw_key(w, "status");
    jw_cstr(w, error != NULL ? "failed" : end == NULL ? "in_progress"
                                       : is_cut       ? "incomplete"
                                                      : "completed");
    put_failure(w, error);
    jw_key(w, "incomplete_details");
    if (is_cut) {
        jw_begin_object(w);
        jw_key(w, "reason");
        jw_cstr(w, "max_output_tokens");
        jw_end_object(w);
    } else {
        jw_null(w);
    }
    jw_key(w, "model");
    jw_cstr(w, reply->model);
    jw_key(w, "output");
    jw_begin_array(w);
    for (size_t i = 0; (end != NULL || error != NULL) && i < s->n_items; i++) {
        put_item(w, reply, &s->items[i], i, false);
    }
    jw_end_array(w);
    jw_key(w, "parallel_tool_calls");
    jw_bool(w, !s->one_tool_call);
    put_null(w, "previous_response_id");
    jw_key(w, "tool_choice");
    jw_cstr(w, "auto");
    jw_key(w, "tools");
    TRY(jw_finish(w, err));
    TRY(buf_append_slice(w->out, buf_slice(&s->tools), err));
    w->need_comma = true;
    jw_key(w, "store");
    jw_bool(w, false);
    if (end != NULL) {
        put_usage(w, end);
    } else {
        put_null(w, "usage");
    }
    jw_end_object(w);
    return jw_finish(w, err);
}

/* ---- events ---- */

static smoe_status begin(json_writer *w, responses_state *s, const char *type, buf *out,
                         smoe_err *err)
{
    TRY(buf_printf(out, err, "event: %s\ndata: ", type));
    jw_init(w, out);
    jw_begin_object(w);
    jw_key(w, "type");
    jw_cstr(w, type);
    jw_key(w, "sequence_number");
    jw_uint(w, s->sequence++);
    return SMOE_OK;
}

static smoe_status finish(json_writer *w, smoe_err *err)
{
    jw_end_object(w);
    TRY(jw_finish(w, err));
    return buf_puts(w->out, "\n\n", err);
}

static smoe_status response_event(responses_state *s, const char *type, const http_reply *reply,
                                  const http_end *end, const http_error *error, buf *out,
                                  smoe_err *err)
{
    json_writer w;
    TRY(begin(&w, s, type, out, err));
    jw_key(&w, "response");
    TRY(jw_finish(&w, err));
    TRY(put_response(&w, s, reply, end, error, err));
    return finish(&w, err);
}

static smoe_status item_event(responses_state *s, const http_reply *reply, bool begun, buf *out,
                              smoe_err *err)
{
    json_writer w;
    size_t i = s->n_items - 1;
    TRY(begin(&w, s, begun ? "response.output_item.added" : "response.output_item.done", out, err));
    jw_key(&w, "output_index");
    jw_uint(&w, i);
    jw_key(&w, "item");
    put_item(&w, reply, &s->items[i], i, begun);
    return finish(&w, err);
}

/* Head of an event about the text of the last item. */
static smoe_status text_event(json_writer *w, responses_state *s, const http_reply *reply,
                              const char *type, buf *out, smoe_err *err)
{
    size_t i = s->n_items - 1;
    TRY(begin(w, s, type, out, err));
    put_item_id(w, "item_id", reply, &s->items[i], i);
    jw_key(w, "output_index");
    jw_uint(w, i);
    if (s->items[i].kind != ITEM_CALL) {
        jw_key(w, "content_index");
        jw_int(w, 0);
    }
    return SMOE_OK;
}

static smoe_status part_event(responses_state *s, const http_reply *reply, bool begun, buf *out,
                              smoe_err *err)
{
    json_writer w;
    const response_item *item = &s->items[s->n_items - 1];
    if (item->kind == ITEM_CALL) {
        return SMOE_OK;
    }
    TRY(text_event(&w, s, reply,
                   begun ? "response.content_part.added" : "response.content_part.done", out, err));
    jw_key(&w, "part");
    put_part(&w, item->kind, begun ? (slice){"", 0} : buf_slice(&item->text));
    return finish(&w, err);
}

static smoe_status open_item(responses_state *s, const http_reply *reply, enum item_kind kind,
                             slice name, buf *out, smoe_err *err)
{
    TRY(add_item(s, kind, name, err));
    s->open = true;
    TRY(item_event(s, reply, true, out, err));
    return part_event(s, reply, true, out, err);
}

static smoe_status close_item(responses_state *s, const http_reply *reply, buf *out, smoe_err *err)
{
    static const char *const types[] = {
        [ITEM_REASONING] = "response.reasoning_text.done",
        [ITEM_MESSAGE] = "response.output_text.done",
        [ITEM_CALL] = "response.function_call_arguments.done"};
    json_writer w;
    if (!s->open) {
        return SMOE_OK;
    }
    const response_item *item = &s->items[s->n_items - 1];
    s->open = false;
    TRY(text_event(&w, s, reply, types[item->kind], out, err));
    jw_key(&w, item->kind == ITEM_CALL ? "arguments" : "text");
    jw_string(&w, buf_slice(&item->text));
    TRY(finish(&w, err));
    TRY(part_event(s, reply, false, out, err));
    return item_event(s, reply, false, out, err);
}

static smoe_status add_text(responses_state *s, const http_reply *reply, enum item_kind kind,
                            slice text, buf *out, smoe_err *err)
{
    static const char *const types[] = {
        [ITEM_REASONING] = "response.reasoning_text.delta",
        [ITEM_MESSAGE] = "response.output_text.delta",
        [ITEM_CALL] = "response.function_call_arguments.delta"};
    json_writer w;
    if (!s->open || s->items[s->n_items - 1].kind != kind) {
        TRY(close_item(s, reply, out, err));
        TRY(open_item(s, reply, kind, (slice){"", 0}, out, err));
    }
    TRY(buf_append_slice(&s->items[s->n_items - 1].text, text, err));
    TRY(text_event(&w, s, reply, types[kind], out, err));
    jw_key(&w, "delta");
    jw_string(&w, text);
    return finish(&w, err);
}

static smoe_status stream(void *opaque, const http_reply *reply, const http_event *e, buf *out,
                          smoe_err *err)
{
    responses_state *s = opaque;
    switch (e->kind) {
    case HTTP_EVENT_BEGIN:
        TRY(response_event(s, "response.created", reply, NULL, NULL, out, err));
        return response_event(s, "response.in_progress", reply, NULL, NULL, out, err);
    case HTTP_EVENT_WAITING:
        return openai_sse_waiting(e, out, err);
    case HTTP_EVENT_REASONING:
        return add_text(s, reply, ITEM_REASONING, e->text, out, err);
    case HTTP_EVENT_CONTENT:
        return add_text(s, reply, ITEM_MESSAGE, e->text, out, err);
    case HTTP_EVENT_LOGPROBS: /* never asked for */
        return SMOE_OK;
    case HTTP_EVENT_TOOL_BEGIN:
        TRY(close_item(s, reply, out, err));
        return open_item(s, reply, ITEM_CALL, e->text, out, err);
    case HTTP_EVENT_TOOL_INPUT:
        return add_text(s, reply, ITEM_CALL, e->text, out, err);
    case HTTP_EVENT_TOOL_END:
        return close_item(s, reply, out, err);
    case HTTP_EVENT_END:
        if (s->n_items == 0) { /* an empty answer is one, too */
            TRY(open_item(s, reply, ITEM_MESSAGE, (slice){"", 0}, out, err));
        }
        TRY(close_item(s, reply, out, err));
        return response_event(s, e->end->fin == HTTP_FIN_LENGTH ? "response.incomplete"
                                                                : "response.completed",
                              reply, e->end, NULL, out, err);
    case HTTP_EVENT_ERROR:
        TRY(close_item(s, reply, out, err));
        return response_event(s, "response.failed", reply, NULL, e->error, out, err);
    }
    return SMOE_OK;
}

/* An answer has lost the order of its parts; this is the one that models write. */
static smoe_status whole(void *opaque, const http_reply *reply, const http_answer *answer, buf *out,
                         smoe_err *err)
{
    responses_state *s = opaque;
    json_writer w;
    if (answer->reasoning.len > 0) {
        TRY(add_item(s, ITEM_REASONING, (slice){"", 0}, err));
        TRY(buf_append_slice(&s->items[0].text, buf_slice(&answer->reasoning), err));
    }
    if (answer->content.len > 0 || answer->n_calls == 0) {
        TRY(add_item(s, ITEM_MESSAGE, (slice){"", 0}, err));
        TRY(buf_append_slice(&s->items[s->n_items - 1].text, buf_slice(&answer->content), err));
    }
    for (size_t i = 0; i < answer->n_calls; i++) {
        TRY(add_item(s, ITEM_CALL, buf_slice(&answer->calls[i].name), err));
        TRY(buf_append_slice(&s->items[s->n_items - 1].text,
                             buf_slice(&answer->calls[i].arguments), err));
    }
    jw_init(&w, out);
    return put_response(&w, s, reply, &answer->end, NULL, err);
}

const http_format openai_responses_format = {
    .path = "/v1/responses",
    .parse = parse,
    .free_state = free_state,
    .stream = stream,
    .whole = whole,
    .error = openai_error,
};
