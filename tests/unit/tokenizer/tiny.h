/* tiny.h: a small tokenizer.json made in memory: the 256 byte tokens (id = byte), a few merges
 * after them, and any part replaced by what a test wants there. */
#ifndef TESTS_TINY_H
#define TESTS_TINY_H

#include "base/buf.h"
#include "smoe/tokenizer.h"
#include "support/test.h"

/* Raw JSON for a part of the file; NULL = the default. */
typedef struct tiny_spec {
    const char *added;         /* [] */
    const char *normalizer;    /* {"type":"NFC"} */
    const char *pre_tokenizer; /* Qwen's */
    const char *post_processor, *decoder;
    const char *model_extra; /* members of model before vocab, with a comma at the end */
    const char *vocab_extra; /* members of vocab, with a comma in front */
    const char *merges;      /* the default ones make 256 = he, 257 = ll, 258 = hell, 259 = hello,
                                260 = _w, 261 = or, 262 = wor, 263 = aa, 264 = aaaa, 265 = ha */
    const char *root_extra;  /* members of the file, with a comma at the end */
} tiny_spec;

enum { TINY_N_VOCAB = 266 };

/* The character that stands for a byte in a byte-level vocabulary. */
unsigned tiny_code_of_byte(unsigned char byte);
/* The caller frees the buf. */
void tiny_json(const tiny_spec *spec, buf *out);
/* Loads or fails the test. */
smoe_tokenizer *tiny_tokenizer(const tiny_spec *spec);
smoe_status tiny_load(const tiny_spec *spec, smoe_tokenizer **tok, smoe_err *err);

/* Encodes text (len bytes) and compares with n ids. */
void tiny_check(const smoe_tokenizer *tok, const char *text, size_t len, const int32_t *ids,
                size_t n);
#define CHECK_IDS(tok, text, ...)                                                                  \
    tiny_check(tok, text, sizeof(text) - 1, (const int32_t[]){__VA_ARGS__},                        \
               sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

#endif
