/* anthropic_tools.c: the tools of Anthropic's API as a template takes them, and what chooses among
 * them. Refuses tools that would run on Anthropic's servers, and a call that is demanded: nothing
 * here can force a model to make one. */
#include <stdio.h>

#include "http/anthropic.h"

enum { PARAM_BYTES = 128 };

static bool put_tool(json_writer *w, const json_value *tool, size_t i, http_error *error)
{
    slice type = slice_from("custom"), name, description;
    const json_value *schema = jr_get(tool, "input_schema");
    char param[PARAM_BYTES];
    snprintf(param, sizeof param, "tools[%zu]", i);
    jr_string(jr_get(tool, "type"), &type);
    if (!slice_is(type, "custom")) {
        return http_refuse(error, HTTP_BAD_REQUEST, param,
                           "%s is of type \"%.40s\"; there are only tools that the client runs, "
                           "with a name and an input_schema", param, type.data);
    }
    if (!jr_string(jr_get(tool, "name"), &name) || jr_kind(schema) != JSON_KIND_OBJECT) {
        return http_refuse(error, HTTP_BAD_REQUEST, param,
                           "%s must have a name, a string, and an input_schema, an object", param);
    }
    jw_begin_object(w);
    members_function(w);
    jw_key(w, "name");
    jw_string(w, name);
    if (jr_string(jr_get(tool, "description"), &description)) {
        jw_key(w, "description");
        jw_string(w, description);
    }
    jw_key(w, "parameters");
    jw_value(w, schema);
    jw_end_object(w);
    jw_end_object(w);
    return true;
}

static bool read_choice(const json_value *choice, bool *none, http_request *request,
                        http_error *error)
{
    slice type = slice_from("auto");
    if (jr_is_null(choice)) {
        return true;
    }
    if (!jr_string(jr_get(choice, "type"), &type) ||
        (!slice_is(type, "auto") && !slice_is(type, "none"))) {
        return http_refuse(error, HTTP_BAD_REQUEST, "tool_choice",
                           "tool_choice.type must be auto or none; a call cannot be forced here");
    }
    *none = slice_is(type, "none");
    return field_bool(choice, "disable_parallel_tool_use", &request->one_tool_call, error);
}

/* A model that can do both thinks unless told not to; Anthropic's API is the other way round. */
static bool put_thinking(json_writer *w, const json_value *thinking, http_error *error)
{
    slice type = slice_from("disabled");
    if (!jr_is_null(thinking) &&
        (!jr_string(jr_get(thinking, "type"), &type) ||
         (!slice_is(type, "enabled") && !slice_is(type, "adaptive") &&
          !slice_is(type, "disabled")))) {
        return http_refuse(error, HTTP_BAD_REQUEST, "thinking",
                           "thinking.type must be enabled, adaptive or disabled");
    }
    jw_key(w, "enable_thinking");
    jw_bool(w, !slice_is(type, "disabled"));
    return true;
}

bool anthropic_tools(const json_value *body, http_request *request, http_error *error)
{
    const json_value *tools = jr_get(body, "tools");
    bool none = false;
    json_writer w;
    smoe_err err;
    if (!jr_is_null(tools) && jr_kind(tools) != JSON_KIND_ARRAY) {
        return http_refuse(error, HTTP_BAD_REQUEST, "tools", "tools must be an array, found %s",
                           jr_kind_name(tools));
    }
    jw_init(&w, &request->variables);
    jw_begin_object(&w);
    if (!put_thinking(&w, jr_get(body, "thinking"), error) ||
        !read_choice(jr_get(body, "tool_choice"), &none, request, error)) {
        return false;
    }
    if (!jr_is_null(tools) && jr_len(tools) > 0 && !none) {
        request->has_tools = true;
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
