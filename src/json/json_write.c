/* json_write.c: see json_write.h. */
#include "json/json_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void jw_init(json_writer *w, buf *out)
{
    *w = (json_writer){.out = out};
}

static void put(json_writer *w, const char *text, size_t len)
{
    if (w->err.code == SMOE_OK) {
        buf_append(w->out, text, len, &w->err);
    }
}

static void begin_value(json_writer *w)
{
    if (w->need_comma) {
        put(w, ",", 1);
    }
    w->need_comma = true;
}

void jw_begin_object(json_writer *w)
{
    begin_value(w);
    put(w, "{", 1);
    w->need_comma = false;
}

void jw_end_object(json_writer *w)
{
    put(w, "}", 1);
    w->need_comma = true;
}

void jw_begin_array(json_writer *w)
{
    begin_value(w);
    put(w, "[", 1);
    w->need_comma = false;
}

void jw_end_array(json_writer *w)
{
    put(w, "]", 1);
    w->need_comma = true;
}

static void put_string(json_writer *w, slice s)
{
    put(w, "\"", 1);
    size_t from = 0;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.data[i];
        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f) {
            continue;
        }
        char escape[8];
        const char *name = c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r"
                         : c == '"' ? "\\\"" : c == '\\' ? "\\\\" : NULL;
        int n = name ? snprintf(escape, sizeof escape, "%s", name)
                     : snprintf(escape, sizeof escape, "\\u%04x", c);
        put(w, s.data + from, i - from);
        put(w, escape, (size_t)n);
        from = i + 1;
    }
    if (s.len > from) {
        put(w, s.data + from, s.len - from);
    }
    put(w, "\"", 1);
}

void jw_key_slice(json_writer *w, slice key)
{
    begin_value(w);
    put_string(w, key);
    put(w, ":", 1);
    w->need_comma = false;
}

void jw_key(json_writer *w, const char *key)
{
    jw_key_slice(w, slice_from(key));
}

void jw_string(json_writer *w, slice s)
{
    begin_value(w);
    put_string(w, s);
}

void jw_cstr(json_writer *w, const char *s)
{
    jw_string(w, slice_from(s));
}

static void put_literal(json_writer *w, const char *text)
{
    begin_value(w);
    put(w, text, strlen(text));
}

void jw_int(json_writer *w, int64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, v);
    put_literal(w, text);
}

void jw_uint(json_writer *w, uint64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, v);
    put_literal(w, text);
}

void jw_number(json_writer *w, double v)
{
    char text[32];
    if (!isfinite(v)) { /* JSON has no word for it */
        put_literal(w, "null");
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v) {
            break;
        }
    }
    put_literal(w, text);
}

void jw_bool(json_writer *w, bool v)
{
    put_literal(w, v ? "true" : "false");
}

void jw_null(json_writer *w)
{
    put_literal(w, "null");
}

smoe_status jw_finish(json_writer *w, smoe_err *err)
{
    return w->err.code == SMOE_OK ? SMOE_OK : err_set(err, w->err.code, "%s", w->err.text);
}
