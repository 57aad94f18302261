/* json_where.h: the place of a byte in a JSON text that could not be parsed, as people write it. */
#ifndef JSON_JSON_WHERE_H
#define JSON_JSON_WHERE_H

#include <stddef.h>

#include "base/slice.h"

/* "messages[2].content" for the value that the byte at offset belongs to, or that ended before it;
 * "" for the whole text. Takes any bytes. Cut at size; keys with other characters than letters,
 * digits, '_' and '-' come out as "?", and nesting is shown 16 levels deep. */
void json_where(slice text, size_t offset, char *path, size_t size);

#endif
