/* fuzz_tokenizer.c: tokenizer.json, and a text through whatever was accepted. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "smoe/tokenizer.h"

static const char text[] =
    "Hello, w\xc3\xb6rld! 12345 \xe6\x9d\xb1\xe4\xba\xac \xf0\x9f\x99\x82\xff <|im_end|>\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    smoe_err err;
    smoe_tokenizer *tok = NULL;
    smoe_ids ids = {0};
    if (smoe_tokenizer_new((const char *)data, size, &tok, &err) != SMOE_OK) {
        return 0;
    }
    if (smoe_tokenizer_encode(tok, text, strlen(text), &ids, &err) == SMOE_OK) {
        smoe_detok d;
        smoe_detok_init(&d, tok);
        for (size_t i = 0; i < ids.len; i++) {
            char out[4096];
            if (ids.data[i] < 0 || (uint32_t)ids.data[i] >= smoe_tokenizer_n_vocab(tok)) {
                abort(); /* an id that the tokenizer itself does not have */
            }
            smoe_detok_push(&d, ids.data[i], out, sizeof out);
        }
    }
    smoe_ids_free(&ids);
    smoe_tokenizer_free(tok);
    return 0;
}
