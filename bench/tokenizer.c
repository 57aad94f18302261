/* tokenizer.c: how fast texts are encoded and tokenizers loaded, on one thread; best of several.
 *
 *   bench-tokenizer TOKENIZER_JSON TEXT... */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "smoe/tokenizer.h"

enum { N_RUNS = 7, MAX_BYTES = 256 << 20 };

static void stop(const smoe_err *err)
{
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static void slurp(const char *path, buf *out)
{
    smoe_err err;
    buf_init(out, MAX_BYTES);
    if (file_slurp(path, MAX_BYTES, out, &err) != SMOE_OK) {
        stop(&err);
    }
}

static void measure_text(const smoe_tokenizer *tok, const char *path)
{
    buf text;
    smoe_err err;
    smoe_ids ids = {0};
    uint64_t best = UINT64_MAX;
    slurp(path, &text);
    for (int i = 0; i < N_RUNS; i++) {
        ids.len = 0;
        uint64_t start = clock_ns();
        if (smoe_tokenizer_encode(tok, text.data, text.len, &ids, &err) != SMOE_OK) {
            stop(&err);
        }
        uint64_t ns = clock_ns() - start;
        best = ns < best ? ns : best;
    }
    printf("%-32s %9zu bytes %8zu tokens %8.1f MB/s\n", path, text.len, ids.len,
           (double)text.len * 1e3 / (double)best);
    smoe_ids_free(&ids);
    buf_fini(&text);
}

int main(int argc, char **argv)
{
    buf json;
    smoe_err err;
    char *compiled;
    size_t len;
    uint64_t from_json = UINT64_MAX, from_compiled = UINT64_MAX;
    smoe_tokenizer *tok = NULL;
    if (argc < 2) {
        fprintf(stderr, "usage: bench-tokenizer TOKENIZER_JSON TEXT...\n");
        return 2;
    }
    slurp(argv[1], &json);
    if (smoe_tokenizer_compile(json.data, json.len, 0, &compiled, &len, &err) != SMOE_OK) {
        stop(&err);
    }
    for (int i = 0; i < 2 * N_RUNS; i++) {
        uint64_t *best = i % 2 ? &from_compiled : &from_json, start = clock_ns();
        smoe_tokenizer_free(tok);
        smoe_status status = i % 2 ? smoe_tokenizer_open_compiled(compiled, len, 0, &tok, &err)
                                   : smoe_tokenizer_new(json.data, json.len, &tok, &err);
        if (status != SMOE_OK) {
            stop(&err);
        }
        uint64_t ns = clock_ns() - start;
        *best = ns < *best ? ns : *best;
    }
    printf("load: %.1f ms from JSON, %.1f ms compiled\n", (double)from_json / 1e6,
           (double)from_compiled / 1e6);
    for (int i = 2; i < argc; i++) {
        measure_text(tok, argv[i]);
    }
    smoe_tokenizer_free(tok);
    smoe_text_free(compiled);
    buf_fini(&json);
    return 0;
}
