/* fuzz_compiled.c: the compiled form of a tokenizer, and a text through whatever was accepted. The
 * checksum and the number of its tokenizer.json are made to fit, or nothing else would be read. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "smoe/tokenizer.h"
#include "tokenizer/compiled.h"

enum { CHECKSUM_AT = 40, JSON_ID = 7, JSON_ID_AT = 32 };

static const char text[] =
    "Hello, w\xc3\xb6rld! 12345 \xe6\x9d\xb1\xe4\xba\xac \xf0\x9f\x99\x82\xff <|im_end|>\n";

static void put_u64(char *at, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        at[i] = (char)(value >> 8 * i);
    }
}

static void use(const smoe_tokenizer *tok)
{
    smoe_err err;
    smoe_ids ids = {0};
    smoe_detok d;
    smoe_detok_init(&d, tok);
    if (smoe_tokenizer_encode(tok, text, strlen(text), &ids, &err) == SMOE_OK) {
        for (size_t i = 0; i < ids.len; i++) {
            char out[4096];
            if (ids.data[i] < 0 || (uint32_t)ids.data[i] >= smoe_tokenizer_n_vocab(tok)) {
                abort(); /* an id that the tokenizer itself does not have */
            }
            smoe_detok_push(&d, ids.data[i], out, sizeof out);
        }
    }
    smoe_ids_free(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    smoe_err err;
    smoe_tokenizer *tok = NULL;
    char *copy = malloc(size ? size : 1);
    if (!copy) {
        abort();
    }
    memcpy(copy, data, size);
    if (size >= COMPILED_HEADER_BYTES) {
        put_u64(copy + JSON_ID_AT, JSON_ID);
        put_u64(copy + CHECKSUM_AT,
                hash_bytes(copy + COMPILED_HEADER_BYTES, size - COMPILED_HEADER_BYTES));
    }
    if (smoe_tokenizer_open_compiled(copy, size, JSON_ID, &tok, &err) == SMOE_OK) {
        free(copy);
        copy = NULL; /* nothing of it is borrowed */
        use(tok);
        smoe_tokenizer_free(tok);
    }
    free(copy);
    return 0;
}
