/* json_read.h: strict JSON reading (over jansson): duplicate keys, trailing garbage, NUL and
 * invalid UTF-8 are errors; values are borrowed from the document and die with it. */
#ifndef JSON_JSON_READ_H
#define JSON_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

typedef struct json_t json_value; /* jansson's own value type, opaque to everyone else */

enum json_kind {
    JSON_KIND_NULL,
    JSON_KIND_BOOL,
    JSON_KIND_INT,
    JSON_KIND_REAL,
    JSON_KIND_STRING,
    JSON_KIND_ARRAY,
    JSON_KIND_OBJECT,
};

/* `what` names the text in messages ("config.json of /x"). The caller owns *out (jr_free). */
smoe_status jr_parse(slice text, const char *what, json_value **out, smoe_err *err);
/* The same; *offset is the byte at which it stopped, on failure. */
smoe_status jr_parse_at(slice text, const char *what, json_value **out, size_t *offset,
                        smoe_err *err);
void jr_free(json_value *root);

enum json_kind jr_kind(const json_value *v);
/* "an array", "null", ... for messages; v may be NULL */
const char *jr_kind_name(const json_value *v);

/* NULL: not an object or absent */
const json_value *jr_get(const json_value *object, const char *key);
/* NULL: not an array or past it */
const json_value *jr_at(const json_value *array, size_t i);
/* of an array or object, else 0 */
size_t jr_len(const json_value *v);

bool jr_is_null(const json_value *v);               /* true for NULL pointers too */
bool jr_bool(const json_value *v, bool *out);       /* false when it is something else */
bool jr_int(const json_value *v, int64_t *out);     /* integers only (1.0 is not one) */
bool jr_number(const json_value *v, double *out);   /* integers and reals */
bool jr_string(const json_value *v, slice *out);    /* borrowed, also NUL-terminated */

/* Object iteration in file order: for (void *it = jr_iter(o); it; it = jr_next(o, it)) */
void *jr_iter(const json_value *object);
void *jr_next(const json_value *object, void *it);
slice jr_iter_key(void *it);
const json_value *jr_iter_value(void *it);

#endif
