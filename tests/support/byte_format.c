/* byte_format.c: a chat format whose tokens are bytes, so that tests of the console need no model
 * and no tokenizer. The prompt is "<role>content</>" for every message, then "<assistant>". Id 256
 * is special. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "json/json_read.h"
#include "smoe/tokenizer.h"

struct smoe_chat_format {
    int unused;
};

struct smoe_tokenizer {
    int unused;
};

static smoe_chat_format the_format;
static smoe_tokenizer the_tokenizer;

smoe_status smoe_chat_format_new(const smoe_chat_files *files, smoe_chat_format **out,
                                 smoe_err *err)
{
    (void)files;
    (void)err;
    *out = &the_format;
    return SMOE_OK;
}

void smoe_chat_format_free(smoe_chat_format *f)
{
    (void)f;
}

const smoe_tokenizer *smoe_chat_format_tokenizer(const smoe_chat_format *f)
{
    (void)f;
    return &the_tokenizer;
}

void smoe_ids_free(smoe_ids *ids)
{
    mem_free(ids->data);
    *ids = (smoe_ids){0};
}

smoe_status smoe_ids_push(smoe_ids *ids, int32_t id, smoe_err *err)
{
    if (ids->len == ids->cap) {
        size_t cap = ids->cap ? ids->cap * 2 : 64;
        int32_t *data = mem_realloc(ids->data, cap * sizeof *data);
        if (data == NULL) {
            return err_nomem(err, "ids", cap);
        }
        ids->data = data;
        ids->cap = cap;
    }
    ids->data[ids->len++] = id;
    return SMOE_OK;
}

static smoe_status push_text(smoe_ids *ids, slice text, smoe_err *err)
{
    for (size_t i = 0; i < text.len; i++) {
        TRY(smoe_ids_push(ids, (unsigned char)text.data[i], err));
    }
    return SMOE_OK;
}

static smoe_status push_message(smoe_ids *ids, const json_value *m, smoe_err *err)
{
    slice role, content;
    if (!jr_string(jr_get(m, "role"), &role) || !jr_string(jr_get(m, "content"), &content)) {
        return err_set(err, SMOE_FORMAT, "a message without role or content");
    }
    if (slice_is(content, "refuse")) {
        return err_set(err, SMOE_FORMAT, "the chat template says: no");
    }
    TRY(push_text(ids, slice_from("<"), err));
    TRY(push_text(ids, role, err));
    TRY(push_text(ids, slice_from(">"), err));
    TRY(push_text(ids, content, err));
    return push_text(ids, slice_from("</>"), err);
}

smoe_status smoe_chat_format_encode(const smoe_chat_format *f, const char *messages_json,
                                    size_t len, const char *extra_json, smoe_ids *out,
                                    smoe_err *err)
{
    json_value *messages;
    smoe_status status = SMOE_OK;
    (void)f;
    (void)extra_json;
    TRY(jr_parse(slice_of(messages_json, len), "messages", &messages, err));
    for (size_t i = 0; i < jr_len(messages) && status == SMOE_OK; i++) {
        status = push_message(out, jr_at(messages, i), err);
    }
    jr_free(messages);
    return status == SMOE_OK ? push_text(out, slice_from("<assistant>"), err) : status;
}

bool smoe_tokenizer_bytes(const smoe_tokenizer *tok, int32_t id, const char **bytes, size_t *len,
                          bool *is_special)
{
    static char all[256];
    (void)tok;
    if (is_special != NULL) {
        *is_special = false;
    }
    *bytes = all;
    *len = id >= 0 && id < 256;
    if (*len == 1) {
        all[id] = (char)id;
        *bytes = &all[id];
    }
    return *len == 1;
}

int32_t smoe_tokenizer_find(const smoe_tokenizer *tok, const char *text, size_t len)
{
    (void)tok;
    return len == 8 && memcmp(text, "</think>", 8) == 0 ? 257 : -1; /* tags are text here */
}

smoe_status smoe_tokenizer_encode(const smoe_tokenizer *tok, const char *text, size_t len,
                                  smoe_ids *out, smoe_err *err)
{
    (void)tok;
    return push_text(out, slice_of(text, len), err);
}

void smoe_detok_init(smoe_detok *d, const smoe_tokenizer *tok)
{
    *d = (smoe_detok){.tok = tok};
}

/* Holds back an unfinished character; what cannot be completed is the real detokenizer's business.
 * */
size_t smoe_detok_push(smoe_detok *d, int32_t id, char *out, size_t size)
{
    if (id < 0 || id > 255 || size < 4) {
        return 0;
    }
    d->pending[d->n_pending++] = (unsigned char)id;
    unsigned char c = d->pending[0];
    size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 1;
    if (d->n_pending < need) {
        return 0;
    }
    memcpy(out, d->pending, d->n_pending);
    size_t n = d->n_pending;
    d->n_pending = 0;
    return n;
}

size_t smoe_detok_finish(smoe_detok *d, char *out, size_t size)
{
    if (d->n_pending == 0 || size < 3) {
        return 0;
    }
    d->n_pending = 0;
    memcpy(out, "\xef\xbf\xbd", 3);
    return 3;
}
