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

enum { NUMBER_TEXT = 32 };

/* The shortest form that reads back equal; JSON has no word for what is not finite. */
static const char *number_text(double v, char text[NUMBER_TEXT])
{
    if (!isfinite(v)) {
        return "null";
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, NUMBER_TEXT, "%.*g", digits, v);
        if (strtod(text, NULL) == v) {
            break;
        }
    }
    return text;
}

void jw_number(json_writer *w, double v)
{
    char text[NUMBER_TEXT];
    put_literal(w, number_text(v, text));
}

void jw_real(json_writer *w, double v)
{
    char number[NUMBER_TEXT], text[NUMBER_TEXT + 2];
    bool is_whole = isfinite(v) && !strpbrk(number_text(v, number), ".e");
    snprintf(text, sizeof text, "%s%s", number_text(v, number), is_whole ? ".0" : "");
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

static void put_object(json_writer *w, const json_value *v)
{
    jw_begin_object(w);
    for (void *it = jr_iter(v); it; it = jr_next(v, it)) {
        jw_key_slice(w, jr_iter_key(it));
        jw_value(w, jr_iter_value(it));
    }
    jw_end_object(w);
}

static void put_array(json_writer *w, const json_value *v)
{
    jw_begin_array(w);
    for (size_t i = 0; i < jr_len(v); i++) {
        jw_value(w, jr_at(v, i));
    }
    jw_end_array(w);
}

/* As deep as the reader went, which has a limit. */
void jw_value(json_writer *w, const json_value *v)
{
    bool truth = false;
    int64_t i = 0;
    double real = 0;
    slice text = {0};
    switch (jr_kind(v)) {
    case JSON_KIND_NULL:
        jw_null(w);
        break;
    case JSON_KIND_BOOL:
        jr_bool(v, &truth);
        jw_bool(w, truth);
        break;
    case JSON_KIND_INT:
        jr_int(v, &i);
        jw_int(w, i);
        break;
    case JSON_KIND_REAL:
        jr_number(v, &real);
        jw_real(w, real);
        break;
    case JSON_KIND_STRING:
        jr_string(v, &text);
        jw_string(w, text);
        break;
    case JSON_KIND_ARRAY:
        put_array(w, v);
        break;
    case JSON_KIND_OBJECT:
        put_object(w, v);
        break;
    }
}

smoe_status jw_finish(json_writer *w, smoe_err *err)
{
    return w->err.code == SMOE_OK ? SMOE_OK : err_set(err, w->err.code, "%s", w->err.text);
}
