/* json_write.h: streaming JSON into a buf. Commas and escapes are ours, nesting is the caller's.
 * The first error sticks; check it once, with jw_finish. */
#ifndef JSON_JSON_WRITE_H
#define JSON_JSON_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "json/json_read.h"

typedef struct json_writer {
    buf *out;
    smoe_err err;       /* code SMOE_OK until something failed */
    bool need_comma;
} json_writer;

void jw_init(json_writer *w, buf *out);
void jw_begin_object(json_writer *w);
void jw_end_object(json_writer *w);
void jw_begin_array(json_writer *w);
void jw_end_array(json_writer *w);
void jw_key(json_writer *w, const char *key);
void jw_key_slice(json_writer *w, slice key);
/* valid UTF-8 kept as it is; only what must be is escaped */
void jw_string(json_writer *w, slice s);
void jw_cstr(json_writer *w, const char *s);
void jw_int(json_writer *w, int64_t v);
void jw_uint(json_writer *w, uint64_t v);
void jw_number(json_writer *w, double v); /* shortest form that reads back equal */
/* the same, but 1 is written 1.0: a reader takes it for a real again */
void jw_real(json_writer *w, double v);
void jw_bool(json_writer *w, bool v);
void jw_null(json_writer *w);
void jw_value(json_writer *w, const json_value *v); /* what json_read read; NULL is null */
smoe_status jw_finish(json_writer *w, smoe_err *err);

#endif
