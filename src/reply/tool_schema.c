/* tool_schema.c: see tool_schema.h. */
#include "reply/tool_schema.h"

static const json_value *get(const json_value *object, slice key)
{
    for (void *it = jr_iter(object); it; it = jr_next(object, it)) {
        if (slice_eq(jr_iter_key(it), key)) {
            return jr_iter_value(it);
        }
    }
    return NULL;
}

const json_value *tool_schema_find(const json_value *tools, slice function, slice parameter)
{
    size_t n = jr_kind(tools) == JSON_KIND_ARRAY ? jr_len(tools) : 0;
    for (size_t i = 0; i < n; i++) {
        const json_value *tool = jr_get(jr_at(tools, i), "function");
        slice name;
        if (jr_string(jr_get(tool, "name"), &name) && slice_eq(name, function)) {
            return get(jr_get(jr_get(tool, "parameters"), "properties"), parameter);
        }
    }
    return NULL;
}

static bool declares(const json_value *type, const char *name)
{
    slice text;
    for (size_t i = 0; jr_kind(type) == JSON_KIND_ARRAY && i < jr_len(type); i++) {
        if (declares(jr_at(type, i), name)) {
            return true;
        }
    }
    return jr_string(type, &text) && slice_is(text, name);
}

static slice from_python(slice text)
{
    return slice_is(text, "True")    ? slice_from("true")
           : slice_is(text, "False") ? slice_from("false")
           : slice_is(text, "None")  ? slice_from("null")
                                     : text;
}

static bool fits(const json_value *type, enum json_kind kind)
{
    switch (kind) {
    case JSON_KIND_NULL:
        return declares(type, "null");
    case JSON_KIND_BOOL:
        return declares(type, "boolean");
    case JSON_KIND_INT:
        return declares(type, "integer") || declares(type, "number");
    case JSON_KIND_REAL:
        return declares(type, "number");
    case JSON_KIND_ARRAY:
        return declares(type, "array");
    case JSON_KIND_OBJECT:
        return declares(type, "object");
    case JSON_KIND_STRING:
        break;
    }
    return false;
}

bool tool_schema_parse(const json_value *schema, slice text, json_value **out)
{
    const json_value *type = jr_get(schema, "type");
    json_value *value = NULL;
    if (jr_is_null(type) || declares(type, "string") ||
        jr_parse(from_python(text), "a parameter", &value, NULL) != SMOE_OK) {
        return false;
    }
    if (!fits(type, jr_kind(value))) {
        jr_free(value);
        return false;
    }
    *out = value;
    return true;
}
