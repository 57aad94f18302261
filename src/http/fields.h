/* fields.h: reading a request's JSON with errors that name the field. For every format.
 *
 * A missing or null field leaves *out as it is and is no error; *seen (may be NULL) tells. */
#ifndef HTTP_FIELDS_H
#define HTTP_FIELDS_H

#include "base/buf.h"
#include "http/error.h"
#include "json/json_read.h"

/* Parses the body: one JSON object. jr_free(*root). */
bool fields_parse(slice body, json_value **root, http_error *error);

bool field_number(const json_value *object, const char *name, double min, double max, double *out,
                  bool *seen, http_error *error);
bool field_int(const json_value *object, const char *name, int64_t min, int64_t max, int64_t *out,
               bool *seen, http_error *error);
bool field_bool(const json_value *object, const char *name, bool *out, http_error *error);
/* The string's bytes, borrowed. */
bool field_string(const json_value *object, const char *name, slice *out, http_error *error);
/* Appends to out; 500 when memory is refused. */
bool field_append(buf *out, slice text, http_error *error);
/* False, with the sentence, unless status is SMOE_OK: 500 for want of memory, else 400. */
bool field_made(smoe_status status, const smoe_err *err, http_error *error);
/* null, false, 0, "", [] or {}: says what is so anyway. */
bool field_is_default(const json_value *v);
/* Each of the NULL-terminated names must be absent or say what is so anyway; else 400. */
bool fields_refuse(const json_value *object, const char *const *names, http_error *error);

#endif
