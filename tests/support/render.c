/* render.c: renders one template, for comparing with the reference by hand and by script.
 *   render TEMPLATE VARIABLES.json     the text on stdout, or one sentence on stderr and status 1
 *   render --lines < CASES.jsonl       one JSON object {"template", "variables"} per line in; one
 * JSON object {"text"} or {"error"} per line out */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "json/json_read.h"
#include "json/json_write.h"
#include "smoe/tokenizer.h"

enum { MAX_FILE_BYTES = 64 << 20 };

static smoe_status render(slice source, slice variables, char **text, size_t *len, smoe_err *err)
{
    smoe_template *t = NULL;
    TRY(smoe_template_new(source.data, source.len, &t, err));
    smoe_status status = smoe_template_render(t, variables.data, variables.len, text, len, err);
    smoe_template_free(t);
    return status;
}

static int one(const char *template_path, const char *variables_path)
{
    buf source, variables;
    smoe_err err = {0};
    char *text = NULL;
    size_t len = 0;
    buf_init(&source, MAX_FILE_BYTES);
    buf_init(&variables, MAX_FILE_BYTES);
    smoe_status status = file_slurp(template_path, MAX_FILE_BYTES, &source, &err);
    status = status ? status : file_slurp(variables_path, MAX_FILE_BYTES, &variables, &err);
    status = status ? status : render(buf_slice(&source), buf_slice(&variables), &text, &len, &err);
    if (status == SMOE_OK) {
        fwrite(text, 1, len, stdout);
    } else {
        fprintf(stderr, "%s\n", err.text);
    }
    smoe_text_free(text);
    buf_fini(&source);
    buf_fini(&variables);
    return status != SMOE_OK;
}

static smoe_status one_line(slice line, buf *out, smoe_err *err)
{
    json_value *root = NULL;
    slice source = {0}, variables = {0};
    char *text = NULL;
    size_t len = 0;
    json_writer w;
    TRY(jr_parse(line, "a case", &root, err));
    if (!jr_string(jr_get(root, "template"), &source) ||
        !jr_string(jr_get(root, "variables"), &variables)) {
        jr_free(root);
        return err_set(err, SMOE_FORMAT, "a case needs the strings template and variables");
    }
    smoe_err failure = {0};
    smoe_status status = render(source, variables, &text, &len, &failure);
    jw_init(&w, out);
    jw_begin_object(&w);
    jw_key(&w, status == SMOE_OK ? "text" : "error");
    jw_string(&w, status == SMOE_OK ? (slice){text, len} : slice_from(failure.text));
    jw_end_object(&w);
    smoe_text_free(text);
    jr_free(root);
    return jw_finish(&w, err);
}

static int lines(void)
{
    char *line = NULL;
    size_t cap = 0;
    smoe_err err = {0};
    int rc = 0;
    for (ssize_t n; (n = getline(&line, &cap, stdin)) > 0 && rc == 0;) {
        buf out;
        buf_init(&out, 2u * MAX_FILE_BYTES);
        if (one_line((slice){line, (size_t)n}, &out, &err) == SMOE_OK) {
            fwrite(out.data, 1, out.len, stdout);
            putchar('\n');
            fflush(stdout);
        } else {
            fprintf(stderr, "%s\n", err.text);
            rc = 1;
        }
        buf_fini(&out);
    }
    free(line);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--lines") == 0) {
        return lines();
    }
    if (argc != 3) {
        fprintf(stderr, "usage: render TEMPLATE VARIABLES.json | render --lines\n");
        return 2;
    }
    return one(argv[1], argv[2]);
}
