/* tool_body.c: see tool_body.h. */
#include "reply/tool_body.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static slice trim(slice s)
{
    while (s.len > 0 && is_space(s.data[0])) {
        s = slice_of(s.data + 1, s.len - 1);
    }
    while (s.len > 0 && is_space(s.data[s.len - 1])) {
        s.len--;
    }
    return s;
}

static smoe_status refuse(smoe_err *err)
{
    return err_set(err, SMOE_FORMAT, "a tool call is not in a form that is known; show it as text");
}

static smoe_status parse_json(slice body, buf *name, buf *arguments, smoe_err *err)
{
    json_value *root = NULL;
    slice called;
    json_writer w;
    TRY(jr_parse(body, "a tool call", &root, err));
    const json_value *given = jr_get(root, "arguments");
    smoe_status status;
    if (!jr_string(jr_get(root, "name"), &called) || called.len == 0 ||
        jr_kind(given) != JSON_KIND_OBJECT) {
        CHECK(refuse(err));
    }
    CHECK(buf_append_slice(name, called, err));
    jw_init(&w, arguments);
    jw_value(&w, given);
    CHECK(jw_finish(&w, err));
out:
    jr_free(root);
    return status;
}

/* Takes prefix off the front of *s. */
static bool take(slice *s, const char *prefix)
{
    slice p = slice_from(prefix);
    if (!slice_starts(*s, p)) {
        return false;
    }
    *s = slice_of(s->data + p.len, s->len - p.len);
    return true;
}

/* Takes what stands before end, and end, off the front of *s. */
static bool take_until(slice *s, const char *end, slice *out)
{
    slice e = slice_from(end);
    for (size_t i = 0; i + e.len <= s->len; i++) {
        if (memcmp(s->data + i, e.data, e.len) == 0) {
            *out = slice_of(s->data, i);
            *s = slice_of(s->data + i + e.len, s->len - i - e.len);
            return true;
        }
    }
    return false;
}

static smoe_status parse_xml(slice body, buf *name, buf *arguments, smoe_err *err)
{
    slice called, key, value;
    json_writer w;
    json_value *check = NULL;
    if (!take(&body, "<function=") || !take_until(&body, ">", &called) || called.len == 0) {
        return refuse(err);
    }
    TRY(buf_append_slice(name, called, err));
    jw_init(&w, arguments);
    jw_begin_object(&w);
    for (body = trim(body); take(&body, "<parameter="); body = trim(body)) {
        if (!take_until(&body, ">", &key) || !take_until(&body, "</parameter>", &value)) {
            return refuse(err);
        }
        take(&value, "\n");
        value.len -= slice_ends(value, slice_from("\n"));
        jw_key_slice(&w, key);
        jw_string(&w, value);
    }
    if (!slice_is(body, "</function>")) {
        return refuse(err);
    }
    jw_end_object(&w);
    TRY(jw_finish(&w, err));
    /* A key given twice is refused here as in the other form. */
    TRY(jr_parse(buf_slice(arguments), "a tool call", &check, err));
    jr_free(check);
    return SMOE_OK;
}

smoe_status tool_body_parse(slice body, buf *name, buf *arguments, smoe_err *err)
{
    body = trim(body);
    return slice_starts(body, slice_from("{")) ? parse_json(body, name, arguments, err)
                                               : parse_xml(body, name, arguments, err);
}
