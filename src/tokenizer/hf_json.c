/* hf_json.c: see hf_json.h. */
#include "tokenizer/hf_json.h"

#include <stdio.h>

slice hf_clip(slice s)
{
    size_t len = s.len < 48 ? s.len : 48;
    while (len > 0 && len < s.len && ((unsigned char)s.data[len] & 0xC0) == 0x80) {
        len--;
    }
    return slice_of(s.data, len);
}

smoe_status hf_refuse(smoe_err *err, const char *where, const json_value *v, const char *supported)
{
    slice text;
    int64_t number;
    bool flag;
    char value[80];
    if (jr_string(v, &text)) {
        snprintf(value, sizeof value, "\"%.*s\"", SLICE_ARG(hf_clip(text)));
    } else if (jr_int(v, &number)) {
        snprintf(value, sizeof value, "%lld", (long long)number);
    } else if (jr_bool(v, &flag)) {
        snprintf(value, sizeof value, "%s", flag ? "true" : "false");
    } else {
        snprintf(value, sizeof value, "%s", v ? jr_kind_name(v) : "absent");
    }
    return err_set(err, SMOE_UNSUPPORTED, "tokenizer.json: %s is %s; supported: %s", where, value,
                   supported);
}

smoe_status hf_only_keys(const json_value *object, const char *where, const char *const *known,
                         smoe_err *err)
{
    if (jr_kind(object) != JSON_KIND_OBJECT) {
        return err_set(err, SMOE_FORMAT, "tokenizer.json: %s is %s; expected an object", where,
                       jr_kind_name(object));
    }
    for (void *it = jr_iter(object); it; it = jr_next(object, it)) {
        slice key = jr_iter_key(it);
        size_t i = 0;
        while (known[i] && !slice_is(key, known[i])) {
            i++;
        }
        if (!known[i]) {
            return err_set(err, SMOE_UNSUPPORTED,
                           "tokenizer.json: %s has the key \"%.*s\", whose meaning is not "
                           "known here",
                           where, SLICE_ARG(hf_clip(key)));
        }
    }
    return SMOE_OK;
}

bool hf_type_is(const json_value *object, const char *type)
{
    slice s;
    return jr_string(jr_get(object, "type"), &s) && slice_is(s, type);
}

smoe_status hf_read_flag(const json_value *object, const char *where, const char *key, bool *out,
                         smoe_err *err)
{
    const json_value *v = jr_get(object, key);
    if (!v || jr_bool(v, out)) {
        return SMOE_OK;
    }
    return err_set(err, SMOE_FORMAT, "tokenizer.json: %s.%s is %s; expected true or false", where,
                   key, jr_kind_name(v));
}

bool hf_is_nothing(const json_value *v)
{
    slice s;
    return jr_is_null(v) || (jr_string(v, &s) && s.len == 0);
}
