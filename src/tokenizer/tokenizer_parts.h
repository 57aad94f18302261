/* tokenizer_parts.h: what a tokenizer is made of. Filled by hf_load.c, read by everyone else; after
 * loading it never changes, so threads may share it. */
#ifndef TOKENIZER_TOKENIZER_PARTS_H
#define TOKENIZER_TOKENIZER_PARTS_H

#include "json/json_read.h"
#include "smoe/tokenizer.h"
#include "tokenizer/added.h"
#include "tokenizer/bpe.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/vocab.h"

enum { TOKENIZER_MAX_JSON_BYTES = 256 << 20 };

struct smoe_tokenizer {
    vocab vocab;
    added_set added_raw;        /* found in the text as it comes */
    normalizer normalizer;      /* of what lies between */
    added_set added_normalized; /* found in normalised text */
    pretokenizer pretokenizer;
    bpe bpe;
    /* When decoding: */
    size_t n_strip;          /* up to so many spaces at the start of a text are dropped, */
    bool drops_first_spaces; /* ... and all spaces of its first token */
};

struct compiled_model;

/* Fills a zeroed tokenizer from tokenizer.json; the caller frees it also on failure. compiled: what
 * to use instead of the JSON's vocabulary and merges, or NULL. */
smoe_status hf_load(smoe_tokenizer *tok, const json_value *root,
                    const struct compiled_model *compiled, smoe_err *err);

#endif
