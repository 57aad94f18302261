/* openai_responses_read.c: the request of /v1/responses, put into the form of a chat: its items
 * become messages, its tools get their envelope. See openai_responses.h. */
#include <stdio.h>

#include "http/openai_responses.h"

enum { PARAM_BYTES = 64, TEXT_MAX_BYTES = 256 << 20 };

/* Of these the server would have to remember something, or do it later. */
static const char *const unsupported[] = {"previous_response_id", "conversation", "background",
                                          "prompt", "max_tool_calls", "top_logprobs", NULL};

static slice text_of(const json_value *object, const char *key)
{
    slice text = {"", 0};
    jr_string(jr_get(object, key), &text);
    return text;
}

static void put_text(json_writer *w, const char *key, slice text)
{
    jw_key(w, key);
    jw_string(w, text);
}

/* ---- input ---- */

static bool check_parts(const json_value *content, const char *param, http_error *error)
{
    for (size_t i = 0; jr_kind(content) == JSON_KIND_ARRAY && i < jr_len(content); i++) {
        const json_value *part = jr_at(content, i);
        slice type = text_of(part, "type"), text;
        bool is_text = slice_is(type, "input_text") || slice_is(type, "output_text") ||
                       slice_is(type, "text");
        char where[PARAM_BYTES];
        snprintf(where, sizeof where, "%s[%zu]", param, i);
        if (!is_text || !jr_string(jr_get(part, "text"), &text)) {
            return http_refuse(error, HTTP_BAD_REQUEST, where,
                               "%s must be of type input_text or output_text, with a text", where);
        }
    }
    return true;
}

static bool put_message(json_writer *w, const json_value *item, size_t i, http_error *error)
{
    char param[PARAM_BYTES];
    const json_value *content = jr_get(item, "content");
    slice role = text_of(item, "role");
    snprintf(param, sizeof param, "input[%zu].role", i);
    if (!slice_is(role, "user") && !slice_is(role, "assistant") && !slice_is(role, "system") &&
        !slice_is(role, "developer")) {
        return http_refuse(error, HTTP_BAD_REQUEST, param,
                           "%s must be user, assistant, system or developer", param);
    }
    snprintf(param, sizeof param, "input[%zu].content", i);
    if (jr_kind(content) != JSON_KIND_STRING && jr_kind(content) != JSON_KIND_ARRAY) {
        return http_refuse(error, HTTP_BAD_REQUEST, param,
                           "%s must be a string or an array of parts, found %s", param,
                           jr_kind_name(content));
    }
    if (!check_parts(content, param, error)) {
        return false;
    }
    jw_begin_object(w);
    put_text(w, "role", role);
    jw_key(w, "content");
    jw_value(w, content);
    jw_end_object(w);
    return true;
}

/* The calls that follow each other are one message of the assistant. */
static bool put_call(json_writer *w, const json_value *item, size_t i, bool follows,
                     http_error *error)
{
    char param[PARAM_BYTES];
    slice name, arguments;
    snprintf(param, sizeof param, "input[%zu]", i);
    if (!jr_string(jr_get(item, "name"), &name) ||
        !jr_string(jr_get(item, "arguments"), &arguments)) {
        return http_refuse(error, HTTP_BAD_REQUEST, param,
                           "%s must have a name and arguments, both strings", param);
    }
    if (!follows) {
        jw_begin_object(w);
        put_text(w, "role", slice_from("assistant"));
        jw_key(w, "tool_calls");
        jw_begin_array(w);
    }
    jw_begin_object(w);
    put_text(w, "id", text_of(item, "call_id"));
    members_function(w);
    put_text(w, "name", name);
    put_text(w, "arguments", arguments);
    jw_end_object(w);
    jw_end_object(w);
    return true;
}

static bool put_result(json_writer *w, const json_value *item, size_t i, http_error *error)
{
    char param[PARAM_BYTES];
    const json_value *output = jr_get(item, "output");
    snprintf(param, sizeof param, "input[%zu].output", i);
    if (jr_kind(output) != JSON_KIND_STRING && jr_kind(output) != JSON_KIND_ARRAY) {
        return http_refuse(error, HTTP_BAD_REQUEST, param,
                           "%s must be a string or an array of parts, found %s", param,
                           jr_kind_name(output));
    }
    if (!check_parts(output, param, error)) {
        return false;
    }
    jw_begin_object(w);
    put_text(w, "role", slice_from("tool"));
    put_text(w, "tool_call_id", text_of(item, "call_id"));
    jw_key(w, "content");
    jw_value(w, output);
    jw_end_object(w);
    return true;
}

static bool put_items(json_writer *w, const json_value *input, http_error *error)
{
    bool in_calls = false;
    for (size_t i = 0; i < jr_len(input); i++) {
        const json_value *item = jr_at(input, i);
        slice type = text_of(item, "type");
        bool is_call = slice_is(type, "function_call");
        if (in_calls && !is_call) {
            jw_end_array(w);
            jw_end_object(w);
        }
        bool ok;
        if (is_call) {
            ok = put_call(w, item, i, in_calls, error);
        } else if (slice_is(type, "function_call_output")) {
            ok = put_result(w, item, i, error);
        } else if (slice_is(type, "reasoning")) {
            ok = true; /* of an earlier turn: templates leave it out */
        } else if (type.len == 0 || slice_is(type, "message")) {
            ok = put_message(w, item, i, error);
        } else {
            char param[PARAM_BYTES];
            snprintf(param, sizeof param, "input[%zu].type", i);
            ok = http_refuse(error, HTTP_BAD_REQUEST, param,
                             "%s is \"%.40s\"; message, function_call, function_call_output and "
                             "reasoning are understood", param, type.data);
        }
        if (!ok) {
            return false;
        }
        in_calls = is_call;
    }
    if (in_calls) {
        jw_end_array(w);
        jw_end_object(w);
    }
    return true;
}

/* The input as the messages of a chat. */
static bool put_chat(const json_value *body, json_writer *w, http_error *error)
{
    const json_value *input = jr_get(body, "input");
    slice instructions = {0}, text;
    if (!field_string(body, "instructions", &instructions, error)) {
        return false;
    }
    jw_begin_array(w);
    if (instructions.len > 0) {
        jw_begin_object(w);
        put_text(w, "role", slice_from("system"));
        put_text(w, "content", instructions);
        jw_end_object(w);
    }
    if (jr_string(input, &text)) {
        jw_begin_object(w);
        put_text(w, "role", slice_from("user"));
        put_text(w, "content", text);
        jw_end_object(w);
    } else if (jr_kind(input) != JSON_KIND_ARRAY || jr_len(input) == 0) {
        return http_refuse(error, HTTP_BAD_REQUEST, "input",
                           "input must be a string or an array with at least one item");
    } else if (!put_items(w, input, error)) {
        return false;
    }
    jw_end_array(w);
    return true;
}

static bool read_input(const json_value *body, http_request *request, http_error *error)
{
    buf chat;
    json_writer w;
    smoe_err err;
    json_value *messages = NULL;
    buf_init(&chat, TEXT_MAX_BYTES);
    jw_init(&w, &chat);
    bool ok = put_chat(body, &w, error) && field_made(jw_finish(&w, &err), &err, error) &&
              field_made(jr_parse(buf_slice(&chat), "the input", &messages, &err), &err, error) &&
              openai_messages(messages, &request->messages, error);
    jr_free(messages);
    buf_fini(&chat);
    return ok;
}

/* ---- tools ---- */

/* A function with its members at the top, as chat templates want it: one level further in. */
static bool put_tool(json_writer *w, const json_value *tool, size_t i, http_error *error)
{
    char param[PARAM_BYTES];
    slice name;
    snprintf(param, sizeof param, "tools[%zu]", i);
    if (!slice_is(text_of(tool, "type"), "function") || !jr_string(jr_get(tool, "name"), &name)) {
        return http_refuse(error, HTTP_BAD_REQUEST, param,
                           "%s must be of type function and have a name; the server has no tools "
                           "of its own", param);
    }
    jw_begin_object(w);
    members_function(w);
    for (void *it = jr_iter(tool); it != NULL; it = jr_next(tool, it)) {
        if (!slice_is(jr_iter_key(it), "type") && !slice_is(jr_iter_key(it), "strict")) {
            jw_key_slice(w, jr_iter_key(it));
            jw_value(w, jr_iter_value(it));
        }
    }
    jw_end_object(w);
    jw_end_object(w);
    return true;
}

static bool keep_tools(const json_value *tools, responses_state *state, http_error *error)
{
    json_writer w;
    smoe_err err;
    jw_init(&w, &state->tools);
    jw_begin_array(&w);
    for (size_t i = 0; i < jr_len(tools); i++) {
        jw_value(&w, jr_at(tools, i));
    }
    jw_end_array(&w);
    return field_made(jw_finish(&w, &err), &err, error);
}

static bool read_tools(const json_value *body, http_request *request, responses_state *state,
                       http_error *error)
{
    const json_value *tools = jr_get(body, "tools");
    json_writer w;
    smoe_err err;
    if (!jr_is_null(tools) && jr_kind(tools) != JSON_KIND_ARRAY) {
        return http_refuse(error, HTTP_BAD_REQUEST, "tools", "tools must be an array, found %s",
                           jr_kind_name(tools));
    }
    if (!openai_tool_choice(body, jr_len(tools) > 0, request, error) ||
        !keep_tools(tools, state, error)) {
        return false;
    }
    state->one_tool_call = request->one_tool_call;
    jw_init(&w, &request->variables);
    jw_begin_object(&w);
    if (request->has_tools) {
        jw_key(&w, "tools");
        jw_begin_array(&w);
        for (size_t i = 0; i < jr_len(tools); i++) {
            if (!put_tool(&w, jr_at(tools, i), i, error)) {
                return false;
            }
        }
        jw_end_array(&w);
    }
    jw_end_object(&w);
    return field_made(jw_finish(&w, &err), &err, error);
}

static bool read_text_format(const json_value *body, http_error *error)
{
    const json_value *format = jr_get(jr_get(body, "text"), "format");
    slice type = text_of(format, "type");
    if (!jr_is_null(format) && !slice_is(type, "text") && !slice_is(type, "json_object")) {
        return http_refuse(error, HTTP_BAD_REQUEST, "text.format",
                           "text.format.type must be text or json_object; output is not "
                           "constrained to a schema here");
    }
    return true;
}

bool responses_read(const json_value *body, http_request *request, responses_state *state,
                    http_error *error)
{
    int64_t max_tokens = 0;
    request->is_chat = true;
    if (!openai_common(body, request, error) || !fields_refuse(body, unsupported, error) ||
        !field_int(body, "max_output_tokens", 1, INT64_MAX, &max_tokens, NULL, error) ||
        !read_text_format(body, error)) {
        return false;
    }
    if (max_tokens > 0) {
        request->max_tokens = max_tokens > UINT32_MAX ? UINT32_MAX : (uint32_t)max_tokens;
    }
    return read_input(body, request, error) && read_tools(body, request, state, error);
}
