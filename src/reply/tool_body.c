/* tool_body.c: see tool_body.h. */
#include "reply/tool_body.h"

#include "reply/tool_schema.h"

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

/* The index after the string that begins at i. */
static size_t skip_string(slice json, size_t i)
{
    for (i++; i < json.len && json.data[i] != '"'; i++) {
        i += json.data[i] == '\\';
    }
    return i + 1;
}

/* The text of a member's value. object is valid JSON; empty when no key is spelled that way. */
static slice member_text(slice object, const char *quoted_key)
{
    size_t depth = 0, start = 0;
    bool before_key = false, found = false;
    for (size_t i = 0; i < object.len; i++) {
        char c = object.data[i];
        if (c == '"') {
            size_t end = skip_string(object, i);
            if (before_key) {
                found = slice_is(slice_of(object.data + i, end - i), quoted_key);
                before_key = false;
            }
            i = end - 1;
        } else if (c == ':' && depth == 1 && found) {
            start = i + 1;
            found = false;
        } else if ((c == ',' || c == '}') && depth == 1 && start != 0) {
            return trim(slice_of(object.data + start, i - start));
        } else if (c == '{' || c == '[') {
            before_key = ++depth == 1;
        } else if (c == '}' || c == ']') {
            depth--;
        } else if (c == ',') {
            before_key = depth == 1;
        }
    }
    return (slice){0};
}

/* An object as it stands in the body; one inside a string as the string says. */
static smoe_status put_arguments(slice body, const json_value *given, buf *arguments,
                                 smoe_err *err)
{
    json_value *inner = NULL;
    slice text = member_text(body, "\"arguments\"");
    if (jr_string(given, &text)) {
        smoe_status status = jr_parse(text, "the arguments of a tool call", &inner, err);
        bool is_object = status == SMOE_OK && jr_kind(inner) == JSON_KIND_OBJECT;
        jr_free(inner);
        return is_object ? buf_append_slice(arguments, trim(text), err) : refuse(err);
    }
    if (jr_kind(given) != JSON_KIND_OBJECT) {
        return refuse(err);
    }
    if (text.len > 0) {
        return buf_append_slice(arguments, text, err);
    }
    json_writer w; /* the key is spelled with escapes */
    jw_init(&w, arguments);
    jw_value(&w, given);
    return jw_finish(&w, err);
}

static smoe_status parse_json(slice body, buf *name, buf *arguments, smoe_err *err)
{
    json_value *root = NULL;
    slice called;
    TRY(jr_parse(body, "a tool call", &root, err));
    smoe_status status;
    if (!jr_string(jr_get(root, "name"), &called) || called.len == 0) {
        CHECK(refuse(err));
    }
    CHECK(buf_append_slice(name, called, err));
    CHECK(put_arguments(body, jr_get(root, "arguments"), arguments, err));
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

/* Takes <tag=NAME> off the front of *s; a name is on one line and holds no '<'. */
static bool take_tag(slice *s, const char *tag, slice *name)
{
    return take(s, tag) && take_until(s, ">", name) && name->len > 0 &&
           !memchr(name->data, '<', name->len) && !memchr(name->data, '\n', name->len);
}

static void put_value(json_writer *w, const json_value *schema, slice text)
{
    json_value *value = NULL;
    if (tool_schema_parse(schema, trim(text), &value)) {
        jw_value(w, value);
        jr_free(value);
        return;
    }
    take(&text, "\n");
    text.len -= slice_ends(text, slice_from("\n"));
    jw_string(w, text);
}

static smoe_status parse_xml(slice body, const json_value *tools, buf *name, buf *arguments,
                             smoe_err *err)
{
    slice called, key, value;
    json_writer w;
    json_value *check = NULL;
    if (!take_tag(&body, "<function=", &called)) {
        return refuse(err);
    }
    TRY(buf_append_slice(name, called, err));
    jw_init(&w, arguments);
    jw_begin_object(&w);
    for (body = trim(body); slice_starts(body, slice_from("<parameter=")); body = trim(body)) {
        if (!take_tag(&body, "<parameter=", &key) || !take_until(&body, "</parameter>", &value)) {
            return refuse(err);
        }
        jw_key_slice(&w, key);
        put_value(&w, tool_schema_find(tools, called, key), value);
    }
    if (!slice_is(body, "</function>")) {
        return refuse(err);
    }
    jw_end_object(&w);
    TRY(jw_finish(&w, err));
    /* A key given twice, or bytes that are no text, are refused here as in the other form. */
    TRY(jr_parse(buf_slice(arguments), "a tool call", &check, err));
    jr_free(check);
    return SMOE_OK;
}

smoe_status tool_body_parse(slice body, const json_value *tools, buf *name, buf *arguments,
                            smoe_err *err)
{
    body = trim(body);
    return slice_starts(body, slice_from("{")) ? parse_json(body, name, arguments, err)
                                               : parse_xml(body, tools, name, arguments, err);
}
