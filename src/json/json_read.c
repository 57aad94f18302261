/* json_read.c: see json_read.h. The only file that includes jansson for reading. */
#include "json/json_read.h"

#include <jansson.h>

/* Parsing recurses; jansson itself stops at 2048 levels, which is deeper than any file we read. */

smoe_status jr_parse(slice text, const char *what, json_value **out, smoe_err *err)
{
    size_t offset;
    return jr_parse_at(text, what, out, &offset, err);
}

smoe_status jr_parse_at(slice text, const char *what, json_value **out, size_t *offset,
                        smoe_err *err)
{
    json_error_t e;
    json_t *root = json_loadb(text.data ? text.data : "", text.len,
                              JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (!root) {
        *offset = e.position > 0 ? (size_t)e.position : 0;
        return err_set(err, SMOE_FORMAT, "%s is not valid JSON: line %d, column %d: %s", what,
                       e.line, e.column, e.text);
    }
    *out = root;
    return SMOE_OK;
}

void jr_free(json_value *root)
{
    json_decref(root);
}

enum json_kind jr_kind(const json_value *v)
{
    switch (v ? json_typeof(v) : JSON_NULL) {
    case JSON_TRUE:
    case JSON_FALSE:
        return JSON_KIND_BOOL;
    case JSON_INTEGER:
        return JSON_KIND_INT;
    case JSON_REAL:
        return JSON_KIND_REAL;
    case JSON_STRING:
        return JSON_KIND_STRING;
    case JSON_ARRAY:
        return JSON_KIND_ARRAY;
    case JSON_OBJECT:
        return JSON_KIND_OBJECT;
    default:
        return JSON_KIND_NULL;
    }
}

const char *jr_kind_name(const json_value *v)
{
    static const char *const names[] = {"null", "a boolean", "an integer", "a number",
                                        "a string", "an array", "an object"};
    return v ? names[jr_kind(v)] : "nothing";
}

const json_value *jr_get(const json_value *object, const char *key)
{
    return json_object_get(object, key);
}

const json_value *jr_at(const json_value *array, size_t i)
{
    return json_array_get(array, i);
}

size_t jr_len(const json_value *v)
{
    return json_is_array(v) ? json_array_size(v) : json_object_size(v);
}

bool jr_is_null(const json_value *v)
{
    return !v || json_is_null(v);
}

bool jr_bool(const json_value *v, bool *out)
{
    if (!json_is_boolean(v)) {
        return false;
    }
    *out = json_is_true(v);
    return true;
}

bool jr_int(const json_value *v, int64_t *out)
{
    if (!json_is_integer(v)) {
        return false;
    }
    *out = json_integer_value(v);
    return true;
}

bool jr_number(const json_value *v, double *out)
{
    if (!json_is_number(v)) {
        return false;
    }
    *out = json_number_value(v);
    return true;
}

bool jr_string(const json_value *v, slice *out)
{
    if (!json_is_string(v)) {
        return false;
    }
    *out = slice_of(json_string_value(v), json_string_length(v));
    return true;
}

/* jansson's iteration functions take a mutable object only because one of them can set values. */
static json_t *mutable(const json_value *v)
{
    union {
        const json_t *in;
        json_t *out;
    } u = {.in = v};
    return u.out;
}

void *jr_iter(const json_value *object)
{
    return json_object_iter(mutable(object));
}

void *jr_next(const json_value *object, void *it)
{
    return json_object_iter_next(mutable(object), it);
}

slice jr_iter_key(void *it)
{
    return slice_of(json_object_iter_key(it), json_object_iter_key_len(it));
}

const json_value *jr_iter_value(void *it)
{
    return json_object_iter_value(it);
}
