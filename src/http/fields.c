/* fields.c: see fields.h. */
#include "http/fields.h"

#include "json/json_where.h"

bool fields_parse(slice body, json_value **root, http_error *error)
{
    smoe_err err;
    size_t offset;
    char where[128];
    if (jr_parse_at(body, "the body", root, &offset, &err) != SMOE_OK) {
        json_where(body, offset, where, sizeof where);
        return http_refuse(error, HTTP_BAD_REQUEST, where, "%s%s%s%s", err.text,
                           *where ? " (in " : "", where, *where ? ")" : "");
    }
    if (jr_kind(*root) != JSON_KIND_OBJECT) {
        return http_refuse(error, HTTP_BAD_REQUEST, NULL,
                           "the body must be a JSON object, found %s", jr_kind_name(*root));
    }
    return true;
}

bool field_number(const json_value *object, const char *name, double min, double max, double *out,
                  bool *seen, http_error *error)
{
    const json_value *v = jr_get(object, name);
    double x;
    if (jr_is_null(v)) {
        return true;
    }
    if (!jr_number(v, &x)) {
        return http_refuse(error, HTTP_BAD_REQUEST, name, "%s must be a number, found %s", name,
                           jr_kind_name(v));
    }
    if (!(x >= min && x <= max)) {
        return http_refuse(error, HTTP_BAD_REQUEST, name, "%s must be from %g to %g, found %g",
                           name, min, max, x);
    }
    *out = x;
    if (seen != NULL) {
        *seen = true;
    }
    return true;
}

bool field_int(const json_value *object, const char *name, int64_t min, int64_t max, int64_t *out,
               bool *seen, http_error *error)
{
    const json_value *v = jr_get(object, name);
    double real = 0;
    int64_t x;
    if (jr_is_null(v)) {
        return true;
    }
    /* 1.0 is what some languages make of 1. */
    if (!jr_int(v, &x)) {
        if (!jr_number(v, &real) || !(real > -9e15 && real < 9e15) ||
            (double)(int64_t)real != real) {
            return http_refuse(error, HTTP_BAD_REQUEST, name,
                               "%s must be a whole number, found %s", name, jr_kind_name(v));
        }
        x = (int64_t)real;
    }
    if (x < min || x > max) {
        return http_refuse(error, HTTP_BAD_REQUEST, name,
                           "%s must be from %lld to %lld, found %lld", name, (long long)min,
                           (long long)max, (long long)x);
    }
    *out = x;
    if (seen != NULL) {
        *seen = true;
    }
    return true;
}

bool field_bool(const json_value *object, const char *name, bool *out, http_error *error)
{
    const json_value *v = jr_get(object, name);
    if (!jr_is_null(v) && !jr_bool(v, out)) {
        return http_refuse(error, HTTP_BAD_REQUEST, name, "%s must be true or false, found %s",
                           name, jr_kind_name(v));
    }
    return true;
}

bool field_string(const json_value *object, const char *name, slice *out, http_error *error)
{
    const json_value *v = jr_get(object, name);
    if (!jr_is_null(v) && !jr_string(v, out)) {
        return http_refuse(error, HTTP_BAD_REQUEST, name, "%s must be a string, found %s", name,
                           jr_kind_name(v));
    }
    return true;
}

bool field_made(smoe_status status, const smoe_err *err, http_error *error)
{
    return status == SMOE_OK ? true
           : status == SMOE_NOMEM || status == SMOE_INTERNAL
               ? http_refuse(error, HTTP_INTERNAL, NULL, "%s", err->text)
               : http_refuse(error, HTTP_BAD_REQUEST, NULL, "%s", err->text);
}

bool field_append(buf *out, slice text, http_error *error)
{
    smoe_err err;
    return field_made(buf_append_slice(out, text, &err), &err, error);
}

bool field_is_default(const json_value *v)
{
    bool b = false;
    double x = 0;
    slice s = {0};
    switch (jr_kind(v)) {
    case JSON_KIND_BOOL:
        return jr_bool(v, &b) && !b;
    case JSON_KIND_INT:
    case JSON_KIND_REAL:
        return jr_number(v, &x) && x == 0;
    case JSON_KIND_STRING:
        return jr_string(v, &s) && s.len == 0;
    case JSON_KIND_ARRAY:
    case JSON_KIND_OBJECT:
        return jr_len(v) == 0;
    default:
        return true;
    }
}

bool fields_refuse(const json_value *object, const char *const *names, http_error *error)
{
    for (size_t i = 0; names[i] != NULL; i++) {
        if (!field_is_default(jr_get(object, names[i]))) {
            return http_refuse(error, HTTP_BAD_REQUEST, names[i],
                               "%s would change the answer and is not supported; leave it out",
                               names[i]);
        }
    }
    return true;
}
