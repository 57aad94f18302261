/* tokenizer_parts.h: what a tokenizer is made of. Filled by hf_load.c, read by everyone else; after
 * loading it never changes, so threads may share it. */
#ifndef TOKENIZER_TOKENIZER_PARTS_H
#define TOKENIZER_TOKENIZER_PARTS_H

#include "smoe/tokenizer.h"
#include "tokenizer/added.h"
#include "tokenizer/bpe.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/vocab.h"

struct smoe_tokenizer {
    vocab vocab;
    added_set added_raw;        /* found in the text as it comes */
    bool nfc;                   /* then what lies between is normalised */
    added_set added_normalized; /* found in normalised text */
    pretokenizer pretokenizer;
    bpe bpe;
};

/* Fills a zeroed tokenizer from tokenizer.json; the caller frees it also on failure. */
smoe_status hf_load(smoe_tokenizer *tok, slice json, smoe_err *err);

#endif
