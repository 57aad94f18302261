/* json_where.c: see json_where.h. Follows brackets, keys and commas, and believes the rest. */
#include "json/json_where.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>

enum { MAX_LEVELS = 16 };

typedef struct level {
    bool is_array;
    size_t index;
    slice key;      /* of an object; empty before the first */
    bool in_value;  /* after the colon */
} level;

/* The end of the string that begins at text[i]: its closing quote, or `end`. */
static size_t string_end(slice text, size_t i, size_t end)
{
    for (i++; i < end && text.data[i] != '"'; i++) {
        i += text.data[i] == '\\';
    }
    return i < end ? i : end;
}

static slice shown_key(slice key)
{
    for (size_t i = 0; i < key.len; i++) {
        unsigned char c = (unsigned char)key.data[i];
        if (!isalnum(c) && c != '_' && c != '-') {
            return slice_from("?");
        }
    }
    return key;
}

static void print(const level *levels, size_t n, char *path, size_t size)
{
    size_t used = 0;
    *path = '\0';
    for (size_t i = 0; i < n && used < size; i++) {
        const level *l = &levels[i];
        if (l->is_array) {
            used += (size_t)snprintf(path + used, size - used, "[%zu]", l->index);
        } else if (l->in_value) {
            slice key = shown_key(l->key);
            used += (size_t)snprintf(path + used, size - used, "%s%.*s", used > 0 ? "." : "",
                                     SLICE_ARG(key));
        }
    }
}

void json_where(slice text, size_t offset, char *path, size_t size)
{
    level levels[MAX_LEVELS];
    size_t depth = 0, end = offset < text.len ? offset : text.len;
    for (size_t i = 0; i < end; i++) {
        level *top = depth > 0 && depth <= MAX_LEVELS ? &levels[depth - 1] : NULL;
        char c = text.data[i];
        if (c == '{' || c == '[') {
            if (depth < MAX_LEVELS) {
                levels[depth] = (level){.is_array = c == '['};
            }
            depth++;
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        } else if (c == '"') {
            size_t close = string_end(text, i, end);
            if (top != NULL && !top->in_value) {
                top->key = slice_of(text.data + i + 1, close > i ? close - i - 1 : 0);
            }
            i = close;
        } else if (top != NULL && c == ':') {
            top->in_value = true;
        } else if (top != NULL && c == ',') {
            top->index++;
            top->in_value = false;
        }
    }
    print(levels, depth < MAX_LEVELS ? depth : MAX_LEVELS, path, size);
}
