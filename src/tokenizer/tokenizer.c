/* tokenizer.c: text -> ids. Repair the UTF-8, split off the added tokens, normalise the rest, split
 * off the added tokens that are matched in normalised text, cut into words, encode each word. */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "tokenizer/tokenizer_parts.h"
#include "tokenizer/utf8.h"

enum { MAX_TEXT_BYTES = 512 << 20 };

void smoe_ids_free(smoe_ids *ids)
{
    if (ids) {
        mem_free(ids->data);
        *ids = (smoe_ids){0};
    }
}

smoe_status smoe_ids_push(smoe_ids *ids, int32_t id, smoe_err *err)
{
    if (ids->len == ids->cap) {
        size_t cap = ids->cap ? 2 * ids->cap : 64;
        int32_t *data =
            cap <= SIZE_MAX / sizeof *data ? mem_realloc(ids->data, cap * sizeof *data) : NULL;
        if (!data) {
            return err_nomem(err, "token ids", cap * sizeof *data);
        }
        ids->data = data;
        ids->cap = cap;
    }
    ids->data[ids->len++] = id;
    return SMOE_OK;
}

smoe_status smoe_tokenizer_new(const char *json, size_t len, smoe_tokenizer **out, smoe_err *err)
{
    smoe_status status;
    json_value *root = NULL;
    smoe_tokenizer *tok = mem_calloc(1, sizeof *tok);
    if (!tok) {
        return err_nomem(err, "a tokenizer", sizeof *tok);
    }
    if (len > TOKENIZER_MAX_JSON_BYTES) {
        CHECK(err_set(err, SMOE_RANGE, "tokenizer.json has %zu bytes; the limit is %d", len,
                      TOKENIZER_MAX_JSON_BYTES));
    }
    CHECK(jr_parse(slice_of(json, len), "tokenizer.json", &root, err));
    CHECK(hf_load(tok, root, NULL, err));
    *out = tok;
    tok = NULL;
out:
    jr_free(root);
    smoe_tokenizer_free(tok);
    return status;
}

void smoe_tokenizer_free(smoe_tokenizer *tok)
{
    if (tok) {
        vocab_fini(&tok->vocab);
        added_fini(&tok->added_raw);
        added_fini(&tok->added_normalized);
        normalizer_fini(&tok->normalizer);
        pretokenize_fini(&tok->pretokenizer);
        bpe_fini(&tok->bpe);
        mem_free(tok);
    }
}

uint32_t smoe_tokenizer_n_vocab(const smoe_tokenizer *tok)
{
    return tok->vocab.n_ids;
}

bool smoe_tokenizer_bytes(const smoe_tokenizer *tok, int32_t id, const char **bytes, size_t *len,
                          bool *is_special)
{
    bool known =
        id >= 0 && (uint32_t)id < tok->vocab.n_ids && tok->vocab.tokens[id].kind != VOCAB_NONE;
    *bytes = known ? tok->vocab.tokens[id].data : "";
    *len = known ? tok->vocab.tokens[id].len : 0;
    if (is_special) {
        *is_special = known && tok->vocab.tokens[id].kind == VOCAB_SPECIAL;
    }
    return known;
}

static int32_t find_added(const smoe_tokenizer *tok, const added_set *set, slice text)
{
    for (size_t i = 0; i < set->n; i++) {
        const vocab_token *token = &tok->vocab.tokens[set->tokens[i].id];
        if (slice_eq(text, slice_of(token->key, token->key_len))) {
            return set->tokens[i].id;
        }
    }
    return -1;
}

int32_t smoe_tokenizer_find(const smoe_tokenizer *tok, const char *text, size_t len)
{
    slice s = slice_of(text, len);
    int32_t id = find_added(tok, &tok->added_raw, s);
    id = id < 0 ? find_added(tok, &tok->added_normalized, s) : id;
    id = id < 0 ? vocab_find(&tok->vocab, s) : id;
    return id < 0 && len == 1 ? tok->bpe.fallback_ids[(unsigned char)text[0]] : id;
}

/* One call of smoe_tokenizer_encode: the stages below hand each other pieces of text through it. */
typedef struct encoder {
    const smoe_tokenizer *tok;
    smoe_ids *out;
    slice text; /* all of it */
    bool is_first; /* the piece in hand is its start */
    buf repaired;
    normalizer_work normalize;
    pretokenize_work *pretokenize; /* made for the first piece that is not an added token */
    bpe_work bpe;
} encoder;

static smoe_status encode_word(void *context, slice word, smoe_err *err)
{
    encoder *e = context;
    return bpe_encode(&e->tok->bpe, &e->tok->vocab, &e->bpe, word, e->out, err);
}

static smoe_status encode_normalized(void *context, slice piece, int32_t id, smoe_err *err)
{
    encoder *e = context;
    if (id >= 0) {
        e->is_first = false;
        return smoe_ids_push(e->out, id, err);
    }
    if (!e->pretokenize) {
        TRY(pretokenize_work_new(&e->tok->pretokenizer, e->text.len, &e->pretokenize, err));
    }
    bool is_first = e->is_first;
    e->is_first = false;
    return pretokenize_run(e->pretokenize, piece, is_first, encode_word, e, err);
}

static smoe_status encode_raw(void *context, slice piece, int32_t id, smoe_err *err)
{
    encoder *e = context;
    if (id >= 0) {
        return smoe_ids_push(e->out, id, err);
    }
    e->is_first = piece.data == e->text.data;
    TRY(normalizer_run(&e->tok->normalizer, &e->normalize, piece, &piece, err));
    return added_split(&e->tok->added_normalized, piece, encode_normalized, e, err);
}

/* Copies text with every maximal invalid part replaced by one U+FFFD. */
static smoe_status repair(buf *out, slice text, smoe_err *err)
{
    while (text.len) {
        size_t n = utf8_valid_prefix(text);
        TRY(buf_append(out, text.data, n, err));
        text = slice_of(text.data + n, text.len - n);
        if (text.len) {
            uint32_t code;
            utf8_step(text, &n, &code);
            TRY(buf_puts(out, UTF8_REPLACEMENT, err));
            text = slice_of(text.data + n, text.len - n);
        }
    }
    return SMOE_OK;
}

smoe_status smoe_tokenizer_encode(const smoe_tokenizer *tok, const char *text, size_t len,
                                  smoe_ids *out, smoe_err *err)
{
    slice input = slice_of(text, len);
    size_t len_before = out->len;
    smoe_status status;
    if (len > MAX_TEXT_BYTES) {
        return err_set(err, SMOE_RANGE,
                       "a text of %zu bytes is too long to encode at once: the limit is %d bytes",
                       len, MAX_TEXT_BYTES);
    }
    encoder e = {.tok = tok, .out = out};
    buf_init(&e.repaired, 3 * (size_t)MAX_TEXT_BYTES);
    normalizer_work_init(&e.normalize, len);
    if (utf8_valid_prefix(input) < len) {
        CHECK(repair(&e.repaired, input, err));
        input = buf_slice(&e.repaired);
    }
    e.text = input;
    CHECK(added_split(&tok->added_raw, input, encode_raw, &e, err));
out:
    if (status != SMOE_OK) {
        out->len = len_before;
    }
    buf_fini(&e.repaired);
    normalizer_work_fini(&e.normalize);
    pretokenize_work_free(e.pretokenize);
    bpe_work_fini(&e.bpe);
    return status;
}
