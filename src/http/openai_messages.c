/* openai_messages.c: the messages of a chat completion, checked, as a template takes them.
 *
 * Refuses what a template would drop in silence: parts that are not text, roles it cannot know. */
#include <stdio.h>

#include "http/openai.h"

enum { PARAM_BYTES = 128 };

/* Parts are joined with a line break: clients put a file or a paragraph in each. */
static bool put_parts(const json_value *parts, const char *param, buf *text, http_error *error)
{
    for (size_t i = 0; i < jr_len(parts); i++) {
        const json_value *part = jr_at(parts, i);
        slice type = {0}, piece = {0};
        char where[PARAM_BYTES];
        snprintf(where, sizeof where, "%s[%zu]", param, i);
        if (!jr_string(jr_get(part, "type"), &type)) {
            return http_refuse(error, HTTP_BAD_REQUEST, where,
                               "%s must be an object with a type, found %s", where,
                               jr_kind_name(part));
        }
        bool is_text = slice_is(type, "text") || slice_is(type, "input_text") ||
                       slice_is(type, "output_text");
        if (!is_text && !slice_is(type, "refusal")) {
            return http_refuse(error, HTTP_BAD_REQUEST, where,
                               "%s is of type \"%.40s\"; only text is understood here", where,
                               type.data);
        }
        if (!jr_string(jr_get(part, is_text ? "text" : "refusal"), &piece)) {
            return http_refuse(error, HTTP_BAD_REQUEST, where, "%s has no text", where);
        }
        if ((text->len > 0 && !field_append(text, slice_from("\n"), error)) ||
            !field_append(text, piece, error)) {
            return false;
        }
    }
    return true;
}

/* A string, or an array of typed parts, or null where that is allowed. */
static bool put_content(json_writer *w, const json_value *content, const char *param,
                        bool may_be_null, http_error *error)
{
    slice text = {"", 0};
    buf joined;
    bool ok = true;
    buf_init(&joined, 256 << 20);
    if (jr_kind(content) == JSON_KIND_ARRAY) {
        ok = put_parts(content, param, &joined, error);
        text = joined.len > 0 ? buf_slice(&joined) : text;
    } else if (!jr_string(content, &text) && !(may_be_null && jr_is_null(content))) {
        ok = http_refuse(error, HTTP_BAD_REQUEST, param,
                         "%s must be a string or an array of parts, found %s", param,
                         jr_kind_name(content));
    }
    jw_key(w, "content");
    jw_string(w, text);
    buf_fini(&joined);
    return ok;
}

/* Templates walk through the arguments, so an object is made of the text that the API has. */
static void put_arguments(json_writer *w, slice text)
{
    json_value *arguments = NULL;
    smoe_err err;
    bool is_object = jr_parse(text, "arguments", &arguments, &err) == SMOE_OK &&
                     jr_kind(arguments) == JSON_KIND_OBJECT;
    jw_key(w, "arguments");
    if (is_object) {
        jw_value(w, arguments);
    } else {
        jw_string(w, text);
    }
    jr_free(arguments);
}

static bool put_call(json_writer *w, const json_value *call, const char *param, http_error *error)
{
    const json_value *function = jr_get(call, "function");
    slice id = {"", 0}, name, arguments = {"", 0};
    if (!jr_string(jr_get(function, "name"), &name) ||
        (!jr_is_null(jr_get(function, "arguments")) &&
         !jr_string(jr_get(function, "arguments"), &arguments))) {
        return http_refuse(error, HTTP_BAD_REQUEST, param,
                           "%s must have a function with a name and arguments, both strings",
                           param);
    }
    jr_string(jr_get(call, "id"), &id);
    jw_begin_object(w);
    jw_key(w, "id");
    jw_string(w, id);
    members_function(w);
    jw_key(w, "name");
    jw_string(w, name);
    put_arguments(w, arguments);
    jw_end_object(w);
    jw_end_object(w);
    return true;
}

static bool put_calls(json_writer *w, const json_value *calls, const char *param,
                      http_error *error)
{
    if (jr_kind(calls) != JSON_KIND_ARRAY) {
        return http_refuse(error, HTTP_BAD_REQUEST, param, "%s must be an array, found %s", param,
                           jr_kind_name(calls));
    }
    jw_key(w, "tool_calls");
    jw_begin_array(w);
    for (size_t i = 0; i < jr_len(calls); i++) {
        char where[PARAM_BYTES];
        snprintf(where, sizeof where, "%s[%zu]", param, i);
        if (!put_call(w, jr_at(calls, i), where, error)) {
            return false;
        }
    }
    jw_end_array(w);
    return true;
}

static bool known_role(slice *role)
{
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    if (slice_is(*role, "developer")) {
        *role = slice_from("system");
    } else if (slice_is(*role, "function")) {
        *role = slice_from("tool");
    }
    for (size_t i = 0; i < 4; i++) {
        if (slice_is(*role, roles[i])) {
            return true;
        }
    }
    return false;
}

static bool put_message(json_writer *w, const json_value *message, size_t i, http_error *error)
{
    static const char *const kept[] = {"name", "tool_call_id", "reasoning_content", "reasoning"};
    slice role, text;
    char param[PARAM_BYTES];
    snprintf(param, sizeof param, "messages[%zu].role", i);
    if (!jr_string(jr_get(message, "role"), &role) || !known_role(&role)) {
        return http_refuse(error, HTTP_BAD_REQUEST, param,
                           "%s must be system, developer, user, assistant or tool", param);
    }
    bool is_assistant = slice_is(role, "assistant");
    jw_begin_object(w);
    jw_key(w, "role");
    jw_string(w, role);
    snprintf(param, sizeof param, "messages[%zu].content", i);
    if (!put_content(w, jr_get(message, "content"), param, is_assistant, error)) {
        return false;
    }
    for (size_t k = 0; k < 4; k++) {
        if (jr_string(jr_get(message, kept[k]), &text)) {
            jw_key(w, kept[k]);
            jw_string(w, text);
        }
    }
    const json_value *calls = jr_get(message, "tool_calls");
    snprintf(param, sizeof param, "messages[%zu].tool_calls", i);
    if (is_assistant && !field_is_default(calls) && !put_calls(w, calls, param, error)) {
        return false;
    }
    jw_end_object(w);
    return true;
}

bool openai_messages(const json_value *messages, buf *out, http_error *error)
{
    json_writer w;
    smoe_err err;
    if (jr_kind(messages) != JSON_KIND_ARRAY || jr_len(messages) == 0) {
        return http_refuse(error, HTTP_BAD_REQUEST, "messages",
                           "messages must be an array with at least one message, found %s",
                           jr_kind(messages) == JSON_KIND_ARRAY ? "an empty one"
                                                                : jr_kind_name(messages));
    }
    jw_init(&w, out);
    jw_begin_array(&w);
    for (size_t i = 0; i < jr_len(messages); i++) {
        if (!put_message(&w, jr_at(messages, i), i, error)) {
            return false;
        }
    }
    jw_end_array(&w);
    return field_made(jw_finish(&w, &err), &err, error);
}
