/* cases.h: running a template against what it must give. */
#ifndef TEMPLATE_CASES_H
#define TEMPLATE_CASES_H

#include "../../support/test.h"

#include "base/file.h"
#include "base/mem.h"
#include "json/json_read.h"
#include "smoe/tokenizer.h"

enum { CASES_MAX_BYTES = 64 << 20 };

static inline void slurp(const char *path, buf *out)
{
    smoe_err err = {0};
    buf_init(out, CASES_MAX_BYTES);
    ASSERT_OK(file_slurp(path, CASES_MAX_BYTES, out, &err), &err);
}

static inline smoe_status render_text(slice source, slice variables, char **text, size_t *len,
                                      smoe_err *err)
{
    smoe_template *t = NULL;
    *text = NULL;
    TRY(smoe_template_new(source.data, source.len, &t, err));
    smoe_status status = smoe_template_render(t, variables.data, variables.len, text, len, err);
    smoe_template_free(t);
    return status;
}

/* The text of "variables" in a line, as it stands: numbers must keep their form. */
static inline slice variables_of(slice line)
{
    static const char key[] = "\"variables\": "; /* cannot stand inside a JSON string */
    const char *begin = memmem(line.data, line.len, key, sizeof key - 1);
    assert_non_null(begin);
    begin += sizeof key - 1;
    bool in_string = false;
    size_t depth = 0, n = 0;
    do {
        char c = begin[n++];
        if (in_string && c == '\\') {
            n++;
        } else if (c == '"') {
            in_string = !in_string;
        } else if (!in_string) {
            depth += (c == '{') - (size_t)(c == '}');
        }
    } while (depth);
    return (slice){begin, n};
}

/* Calls fn for every line of a file of JSON objects; returns how many there were. */
static inline size_t for_each_case(const char *path,
                                   void (*fn)(const json_value *root, slice variables, void *ctx),
                                   void *ctx)
{
    buf lines;
    size_t n = 0;
    slurp(path, &lines);
    for (size_t at = 0; at < lines.len;) {
        const char *end = memchr(lines.data + at, '\n', lines.len - at);
        size_t len = end ? (size_t)(end - lines.data) - at : lines.len - at;
        json_value *root = NULL;
        smoe_err err = {0};
        slice line = {lines.data + at, len};
        ASSERT_OK(jr_parse(line, "a case", &root, &err), &err);
        fn(root, variables_of(line), ctx);
        jr_free(root);
        at += len + 1;
        n++;
    }
    buf_fini(&lines);
    return n;
}

#endif
