/* compiled.h: a tokenizer in a form that loads in a few milliseconds. Made by smoe shatter, kept in
 * the scout beside tokenizer.json, which stays what counts: a compiled form that is absent, of
 * another version or of another tokenizer.json is not used. Little-endian:
 *
 *   0   "smoe tok"
 *   8   u32 version, COMPILED_VERSION
 *   12  u32 n_ids
 *   16  u32 n_merges
 *   20  u32 n_settings
 *   24  u64 n_keys
 *   32  u64 json_id: which tokenizer.json it was made from; the caller's number
 *   40  u64 XXH3-64 of everything from byte 48 on
 *   48  u32 key_end[n_ids]         where the key of each token ends in keys
 *       u32 merge[n_merges][3]     left, right and merged id, by rank
 *       u8  flags[n_ids]           1 in the model, 2 literal, 4 whole (vocab.h)
 *       u8  settings[n_settings]   tokenizer.json without model.vocab and model.merges
 *       u8  keys[n_keys]
 *
 * Nothing in it is trusted: sizes, ends and ids are checked, and the tables are built anew. */
#ifndef TOKENIZER_COMPILED_H
#define TOKENIZER_COMPILED_H

#include "tokenizer/tokenizer_parts.h"

enum { COMPILED_VERSION = 1, COMPILED_HEADER_BYTES = 48 };

typedef struct compiled_model {
    uint32_t n_ids, n_merges;
    const char *key_ends, *merges, *flags; /* as they lie in the file */
    slice keys;
} compiled_model;

/* Fills the vocabulary, its index and the merges. */
smoe_status compiled_read_model(const compiled_model *c, smoe_tokenizer *tok, smoe_err *err);

#endif
