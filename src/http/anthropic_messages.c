/* anthropic_messages.c: the messages of Anthropic's API as a template takes them.
 *
 * There a message is a list of blocks, and results of tools are blocks of the user; a template has
 * one text per message and a role for tools. So blocks are gathered, and a message is written where
 * its kind changes. Refuses what would be dropped in silence: images, documents, tools that run on
 * Anthropic's servers, and a last message of the assistant, which no template can continue. */
#include <stdio.h>

#include "http/anthropic.h"

enum { PARAM_BYTES = 128, TEXT_MAX_BYTES = 256 << 20 };

static const char billing[] = "x-anthropic-billing-header:";

/* Coding agents begin the system text with a line for the accounting of Anthropic's servers, which
 * differs in each request: the common prefix would end before the first word that matters. */
static slice without_billing(slice text)
{
    while (slice_starts(text, slice_from(billing))) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t n = end != NULL ? (size_t)(end - text.data) + 1 : text.len;
        text = slice_of(text.data + n, text.len - n);
    }
    return text;
}

/* Blocks of text are joined with a line break. */
static bool append_text(buf *out, slice text, http_error *error)
{
    return text.len == 0 ||
           ((out->len == 0 || field_append(out, slice_from("\n"), error)) &&
            field_append(out, text, error));
}

static bool block_type(const json_value *block, const char *param, slice *type, http_error *error)
{
    return jr_string(jr_get(block, "type"), type) ||
           http_refuse(error, HTTP_BAD_REQUEST, param,
                       "%s must be an object with a type, found %s", param, jr_kind_name(block));
}

static bool block_text(const json_value *block, const char *name, const char *param, slice *text,
                       http_error *error)
{
    return jr_string(jr_get(block, name), text) ||
           http_refuse(error, HTTP_BAD_REQUEST, param, "%s must have %s, a string", param, name);
}

static bool refuse_type(slice type, const char *param, http_error *error)
{
    return http_refuse(error, HTTP_BAD_REQUEST, param,
                       "%s is of type \"%.40s\", which is not understood here", param, type.data);
}

/* A string, or an array of text blocks: system, or what a tool said. */
static bool gather_text(const json_value *content, const char *param, bool is_system, buf *out,
                        http_error *error)
{
    slice text, type;
    char where[PARAM_BYTES];
    if (jr_string(content, &text)) {
        return append_text(out, is_system ? without_billing(text) : text, error);
    }
    if (jr_kind(content) != JSON_KIND_ARRAY) {
        return http_refuse(error, HTTP_BAD_REQUEST, param,
                           "%s must be a string or an array of blocks, found %s", param,
                           jr_kind_name(content));
    }
    for (size_t i = 0; i < jr_len(content); i++) {
        const json_value *block = jr_at(content, i);
        snprintf(where, sizeof where, "%s[%zu]", param, i);
        if (!block_type(block, where, &type, error)) {
            return false;
        }
        if (!slice_is(type, "text")) {
            return refuse_type(type, where, error);
        }
        if (!block_text(block, "text", where, &text, error) ||
            !append_text(out, is_system ? without_billing(text) : text, error)) {
            return false;
        }
    }
    return true;
}

static void put_text_message(json_writer *w, const char *role, slice text)
{
    jw_begin_object(w);
    jw_key(w, "role");
    jw_cstr(w, role);
    jw_key(w, "content");
    jw_string(w, text.len > 0 ? text : slice_from(""));
    jw_end_object(w);
}

/* ---- the user ---- */

/* The text gathered so far becomes a message. */
static void flush_user(json_writer *w, buf *text)
{
    if (text->len > 0) {
        put_text_message(w, "user", buf_slice(text));
        buf_clear(text);
    }
}

static bool put_result(json_writer *w, const json_value *block, const char *param,
                       http_error *error)
{
    slice id;
    buf text;
    char where[PARAM_BYTES];
    const json_value *content = jr_get(block, "content");
    buf_init(&text, TEXT_MAX_BYTES);
    snprintf(where, sizeof where, "%s.content", param);
    bool ok = block_text(block, "tool_use_id", param, &id, error) &&
              (jr_is_null(content) || gather_text(content, where, false, &text, error));
    if (ok) {
        jw_begin_object(w);
        jw_key(w, "role");
        jw_cstr(w, "tool");
        jw_key(w, "tool_call_id");
        jw_string(w, id);
        jw_key(w, "content");
        jw_string(w, text.len > 0 ? buf_slice(&text) : slice_from(""));
        jw_end_object(w);
    }
    buf_fini(&text);
    return ok;
}

static bool put_user_block(json_writer *w, const json_value *block, const char *param, buf *text,
                           http_error *error)
{
    slice type, piece;
    if (!block_type(block, param, &type, error)) {
        return false;
    }
    if (slice_is(type, "text")) {
        return block_text(block, "text", param, &piece, error) && append_text(text, piece, error);
    }
    if (slice_is(type, "tool_result")) {
        flush_user(w, text);
        return put_result(w, block, param, error);
    }
    return refuse_type(type, param, error);
}

static bool put_user(json_writer *w, const json_value *content, const char *param,
                     http_error *error)
{
    buf text;
    bool ok = true;
    buf_init(&text, TEXT_MAX_BYTES);
    for (size_t i = 0; ok && i < jr_len(content); i++) {
        char where[PARAM_BYTES];
        snprintf(where, sizeof where, "%s[%zu]", param, i);
        ok = put_user_block(w, jr_at(content, i), where, &text, error);
    }
    flush_user(w, &text);
    buf_fini(&text);
    return ok;
}

/* ---- the assistant ---- */

/* Texts and thoughts of all blocks: a template has one place for each. */
typedef struct spoken {
    buf text, thinking;
    size_t n_calls;
} spoken;

static bool gather_block(const json_value *block, const char *param, spoken *s, http_error *error)
{
    slice type, piece;
    if (!block_type(block, param, &type, error)) {
        return false;
    }
    if (slice_is(type, "text")) {
        return block_text(block, "text", param, &piece, error) &&
               append_text(&s->text, piece, error);
    }
    if (slice_is(type, "thinking")) {
        return block_text(block, "thinking", param, &piece, error) &&
               append_text(&s->thinking, piece, error);
    }
    s->n_calls += slice_is(type, "tool_use");
    return slice_is(type, "tool_use") || slice_is(type, "redacted_thinking") ||
           refuse_type(type, param, error);
}

static bool put_call(json_writer *w, const json_value *block, const char *param,
                     http_error *error)
{
    slice id, name;
    const json_value *input = jr_get(block, "input");
    if (!block_text(block, "id", param, &id, error) ||
        !block_text(block, "name", param, &name, error)) {
        return false;
    }
    if (jr_kind(input) != JSON_KIND_OBJECT) {
        return http_refuse(error, HTTP_BAD_REQUEST, param,
                           "%s must have input, an object, found %s", param, jr_kind_name(input));
    }
    jw_begin_object(w);
    jw_key(w, "id");
    jw_string(w, id);
    members_function(w);
    jw_key(w, "name");
    jw_string(w, name);
    jw_key(w, "arguments");
    jw_value(w, input);
    jw_end_object(w);
    jw_end_object(w);
    return true;
}

static bool put_calls(json_writer *w, const json_value *content, const char *param,
                      http_error *error)
{
    jw_key(w, "tool_calls");
    jw_begin_array(w);
    for (size_t i = 0; i < jr_len(content); i++) {
        const json_value *block = jr_at(content, i);
        slice type;
        char where[PARAM_BYTES];
        snprintf(where, sizeof where, "%s[%zu]", param, i);
        if (jr_string(jr_get(block, "type"), &type) && slice_is(type, "tool_use") &&
            !put_call(w, block, where, error)) {
            return false;
        }
    }
    jw_end_array(w);
    return true;
}

static bool put_spoken(json_writer *w, const json_value *content, const char *param,
                       const spoken *s, http_error *error)
{
    jw_begin_object(w);
    jw_key(w, "role");
    jw_cstr(w, "assistant");
    jw_key(w, "content");
    jw_string(w, s->text.len > 0 ? buf_slice(&s->text) : slice_from(""));
    if (s->thinking.len > 0) {
        jw_key(w, "reasoning_content");
        jw_string(w, buf_slice(&s->thinking));
    }
    if (s->n_calls > 0 && !put_calls(w, content, param, error)) {
        return false;
    }
    jw_end_object(w);
    return true;
}

static bool put_assistant(json_writer *w, const json_value *content, const char *param,
                          http_error *error)
{
    spoken s = {.n_calls = 0};
    bool ok = true;
    buf_init(&s.text, TEXT_MAX_BYTES);
    buf_init(&s.thinking, TEXT_MAX_BYTES);
    for (size_t i = 0; ok && i < jr_len(content); i++) {
        char where[PARAM_BYTES];
        snprintf(where, sizeof where, "%s[%zu]", param, i);
        ok = gather_block(jr_at(content, i), where, &s, error);
    }
    ok = ok && put_spoken(w, content, param, &s, error);
    buf_fini(&s.text);
    buf_fini(&s.thinking);
    return ok;
}

/* ---- all of them ---- */

static bool put_system_message(json_writer *w, const json_value *content, const char *param,
                               http_error *error)
{
    buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    bool ok = gather_text(content, param, true, &text, error);
    if (ok && text.len > 0) {
        put_text_message(w, "system", buf_slice(&text));
    }
    buf_fini(&text);
    return ok;
}

static bool put_message(json_writer *w, const json_value *message, size_t i, bool *is_assistant,
                        http_error *error)
{
    slice role = {0}, text;
    char param[PARAM_BYTES];
    const json_value *content = jr_get(message, "content");
    snprintf(param, sizeof param, "messages[%zu].role", i);
    jr_string(jr_get(message, "role"), &role);
    bool is_system = slice_is(role, "system");
    *is_assistant = slice_is(role, "assistant");
    if (!is_system && !*is_assistant && !slice_is(role, "user")) {
        return http_refuse(error, HTTP_BAD_REQUEST, param,
                           "%s must be user, assistant or system", param);
    }
    snprintf(param, sizeof param, "messages[%zu].content", i);
    if (is_system) {
        return put_system_message(w, content, param, error);
    }
    if (jr_string(content, &text)) {
        put_text_message(w, *is_assistant ? "assistant" : "user", text);
        return true;
    }
    if (jr_kind(content) != JSON_KIND_ARRAY || jr_len(content) == 0) {
        return http_refuse(error, HTTP_BAD_REQUEST, param,
                           "%s must be a string or an array of at least one block", param);
    }
    return *is_assistant ? put_assistant(w, content, param, error)
                         : put_user(w, content, param, error);
}

bool anthropic_messages(const json_value *body, buf *out, http_error *error)
{
    const json_value *messages = jr_get(body, "messages");
    const json_value *system = jr_get(body, "system");
    bool is_assistant = false;
    json_writer w;
    smoe_err err;
    if (jr_kind(messages) != JSON_KIND_ARRAY || jr_len(messages) == 0) {
        return http_refuse(error, HTTP_BAD_REQUEST, "messages",
                           "messages must be an array with at least one message");
    }
    jw_init(&w, out);
    jw_begin_array(&w);
    if (!jr_is_null(system) && !put_system_message(&w, system, "system", error)) {
        return false;
    }
    for (size_t i = 0; i < jr_len(messages); i++) {
        if (!put_message(&w, jr_at(messages, i), i, &is_assistant, error)) {
            return false;
        }
    }
    if (is_assistant) {
        return http_refuse(error, HTTP_BAD_REQUEST, "messages",
                           "the last message must not be of the assistant: an answer that has "
                           "begun cannot be continued here");
    }
    jw_end_array(&w);
    return field_made(jw_finish(&w, &err), &err, error);
}
