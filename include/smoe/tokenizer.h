/* smoe/tokenizer.h: text <-> token ids, exactly as the checkpoint's own tokenizer.json says, and
 * the checkpoint's own chat template. */
#ifndef SMOE_TOKENIZER_H
#define SMOE_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "smoe/status.h"

typedef struct smoe_tokenizer smoe_tokenizer;
typedef struct smoe_ids {
    int32_t *data; /* owned: smoe_ids_free */
    size_t len, cap;
} smoe_ids;

void smoe_ids_free(smoe_ids *ids);
smoe_status smoe_ids_push(smoe_ids *ids, int32_t id, smoe_err *err);

/* json: the bytes of tokenizer.json. Anything in it that is not supported is refused and named. */
smoe_status smoe_tokenizer_new(const char *json, size_t len, smoe_tokenizer **out, smoe_err *err);
/* The compiled form of a tokenizer.json, which loads in a fraction of the time: *out is owned by
 * the caller (smoe_text_free). json_id: a number that tells that tokenizer.json from others. */
smoe_status smoe_tokenizer_compile(const char *json, size_t len, uint64_t json_id, char **out,
                                   size_t *out_len, smoe_err *err);
/* SMOE_MISMATCH when it is of another version or another tokenizer.json: read that instead. */
smoe_status smoe_tokenizer_open_compiled(const char *data, size_t len, uint64_t json_id,
                                         smoe_tokenizer **out, smoe_err *err);
void smoe_tokenizer_free(smoe_tokenizer *tok);
uint32_t smoe_tokenizer_n_vocab(const smoe_tokenizer *tok); /* highest id + 1 */

/* Appends the ids of text (any bytes; invalid UTF-8 is replaced by U+FFFD first). Added tokens
 * inside the text are recognised, as the reference does. No special tokens are added around it. */
smoe_status smoe_tokenizer_encode(const smoe_tokenizer *tok, const char *text, size_t len,
                                  smoe_ids *out, smoe_err *err);
/* The bytes of one id (borrowed, not NUL-terminated; may be part of a UTF-8 sequence). Length 0 and
 * false when the id is unknown. is_special may be NULL. */
bool smoe_tokenizer_bytes(const smoe_tokenizer *tok, int32_t id, const char **bytes, size_t *len,
                          bool *is_special);
/* The id of an added or ordinary token given by its literal text (".", "<|im_end|>"), or -1. */
int32_t smoe_tokenizer_find(const smoe_tokenizer *tok, const char *text, size_t len);

/* Incremental UTF-8: feed ids, get only whole characters. Invalid sequences come out as U+FFFD.
 * Special tokens give nothing. */
typedef struct smoe_detok {
    const smoe_tokenizer *tok;
    unsigned char pending[4];
    size_t n_pending;
    size_t n_strip;    /* spaces at the start of the text that may still be dropped */
    bool drops_spaces; /* of the next token */
} smoe_detok;

void smoe_detok_init(smoe_detok *d, const smoe_tokenizer *tok);
/* Writes at most size bytes; returns the number written, or SIZE_MAX when size is too small
 * (3 x the token's bytes + 16 always suffices). */
size_t smoe_detok_push(smoe_detok *d, int32_t id, char *out, size_t size);
size_t smoe_detok_finish(smoe_detok *d, char *out, size_t size); /* what is left, as U+FFFD */

/* A chat template (Jinja). source: the template text; bos/eos: token texts that it may use, or
 * NULL. */
typedef struct smoe_template smoe_template;
smoe_status smoe_template_new(const char *source, size_t len, smoe_template **out, smoe_err *err);
void smoe_template_free(smoe_template *t);
/* Whether the template reads a variable of that name anywhere (enable_thinking, tools, ...). */
bool smoe_template_uses(const smoe_template *t, const char *name);
/* variables_json: one JSON object with messages, add_generation_prompt, bos_token, tools, ...:
 * every key becomes a template variable. *text is NUL-terminated and owned by the caller
 * (smoe_text_free).
 * Limits: 64 MiB of output, depth 100, a step count: a hostile template ends in an error. */
smoe_status smoe_template_render(const smoe_template *t, const char *variables_json, size_t len,
                                 char **text, size_t *text_len, smoe_err *err);
void smoe_text_free(char *text);

/* What a console needs, from the four embedded files: the template out of tokenizer_config.json (or
 * chat_template.jinja when given), bos/eos text, and the tokenizer. */
typedef struct smoe_chat_format smoe_chat_format;
typedef struct smoe_chat_files {
    const char *tokenizer_json; size_t tokenizer_json_len;
    const char *tokenizer_config_json; size_t tokenizer_config_json_len;
    const char *chat_template; size_t chat_template_len; /* NULL: take tokenizer_config's */
    smoe_tokenizer *tokenizer; /* taken over, also on failure; NULL: make it from tokenizer_json */
} smoe_chat_files;
smoe_status smoe_chat_format_new(const smoe_chat_files *files, smoe_chat_format **out,
                                 smoe_err *err);
void smoe_chat_format_free(smoe_chat_format *f);
const smoe_tokenizer *smoe_chat_format_tokenizer(const smoe_chat_format *f);
const smoe_template *smoe_chat_format_template(const smoe_chat_format *f);
/* messages_json: JSON array of {"role","content"}; extra_json: JSON object of further template
 * variables (enable_thinking, tools), or NULL. Renders with add_generation_prompt and encodes. */
smoe_status smoe_chat_format_encode(const smoe_chat_format *f, const char *messages_json,
                                    size_t len, const char *extra_json, smoe_ids *out,
                                    smoe_err *err);

#endif
