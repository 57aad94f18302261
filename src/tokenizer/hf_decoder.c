/* hf_decoder.c: the decoder of tokenizer.json: what each token decodes to, and what becomes of the
 * start of a text.
 *
 * ByteLevel needs nothing: a byte-level token's key is its bytes. The others work on texts, in the
 * order in which they are published: Replace, ByteFallback, Fuse, Strip at the start; or Metaspace.
 * Each of them but the last works token by token, so it is done once, when loading. */
#include "base/mem.h"
#include "tokenizer/hf_json.h"

enum { MAX_REPLACEMENTS = 8, MAX_STRIPPED = 16 };

typedef struct replacement {
    slice from, to;
} replacement;

typedef struct decoder {
    replacement replacements[MAX_REPLACEMENTS];
    size_t n_replacements;
    bool is_byte_level, has_byte_fallback, has_fuse;
    size_t n_strip;
    bool drops_first_spaces;
} decoder;

static const char supported[] =
    "\"ByteLevel\", \"Metaspace\", and \"Replace\", \"ByteFallback\", \"Fuse\" and \"Strip\" in "
    "this order";

static smoe_status add_replacement(decoder *d, slice from, slice to, const json_value *v,
                                   smoe_err *err)
{
    if (from.len == 0 || d->n_replacements == MAX_REPLACEMENTS || d->has_byte_fallback ||
        d->has_fuse || d->n_strip) {
        return hf_refuse(err, "decoder", jr_get(v, "type"), supported);
    }
    d->replacements[d->n_replacements++] = (replacement){from, to};
    return SMOE_OK;
}

static smoe_status read_replace(decoder *d, const json_value *v, smoe_err *err)
{
    static const char *const keys[] = {"type", "pattern", "content", NULL};
    static const char *const pattern_keys[] = {"String", NULL};
    const json_value *pattern = jr_get(v, "pattern");
    slice from, to;
    TRY(hf_only_keys(v, "decoder (Replace)", keys, err));
    TRY(hf_only_keys(pattern, "decoder (Replace) pattern", pattern_keys, err));
    if (!jr_string(jr_get(pattern, "String"), &from) || !jr_string(jr_get(v, "content"), &to)) {
        return hf_refuse(err, "decoder (Replace) content", jr_get(v, "content"), "a text");
    }
    return add_replacement(d, from, to, v, err);
}

static smoe_status read_strip(decoder *d, const json_value *v, smoe_err *err)
{
    static const char *const keys[] = {"type", "content", "start", "stop", NULL};
    int64_t start, stop;
    slice s;
    TRY(hf_only_keys(v, "decoder (Strip)", keys, err));
    if (!jr_string(jr_get(v, "content"), &s) || !slice_is(s, " ") || !d->has_fuse ||
        !jr_int(jr_get(v, "stop"), &stop) || stop != 0 || !jr_int(jr_get(v, "start"), &start) ||
        start < 0 || start > MAX_STRIPPED) {
        return hf_refuse(err, "decoder", jr_get(v, "type"),
                         "\"Strip\" of up to 16 spaces at the start, after \"Fuse\"");
    }
    d->n_strip = (size_t)start;
    return SMOE_OK;
}

static smoe_status read_metaspace(decoder *d, const json_value *v, smoe_err *err)
{
    pretokenize_stage stage;
    slice mark;
    TRY(hf_read_metaspace(v, "decoder (Metaspace)", &stage, err));
    regex_free(stage.pattern);
    jr_string(jr_get(v, "replacement"), &mark);
    d->drops_first_spaces = stage.prepend != PREPEND_NEVER;
    return add_replacement(d, mark, slice_from(" "), v, err);
}

static smoe_status read_decoder(decoder *d, const json_value *v, int depth, smoe_err *err)
{
    static const char *const keys[] = {"type", "decoders", NULL};
    static const char *const byte_level_keys[] = {"type", "add_prefix_space", "trim_offsets",
                                                  "use_regex", NULL};
    static const char *const plain_keys[] = {"type", NULL};
    if (hf_type_is(v, "Sequence") && depth < HF_MAX_NESTED_SEQUENCES) {
        const json_value *list = jr_get(v, "decoders");
        TRY(hf_only_keys(v, "decoder", keys, err));
        for (size_t i = 0; i < jr_len(list); i++) {
            TRY(read_decoder(d, jr_at(list, i), depth + 1, err));
        }
        return SMOE_OK;
    }
    if (hf_type_is(v, "ByteLevel")) {
        d->is_byte_level = true;
        return hf_only_keys(v, "decoder (ByteLevel)", byte_level_keys, err);
    }
    if (hf_type_is(v, "Replace")) {
        return read_replace(d, v, err);
    }
    if (hf_type_is(v, "Strip")) {
        return read_strip(d, v, err);
    }
    if (hf_type_is(v, "Metaspace") && depth == 0) {
        return read_metaspace(d, v, err);
    }
    bool is_fallback = hf_type_is(v, "ByteFallback"), is_fuse = hf_type_is(v, "Fuse");
    if ((!is_fallback && !is_fuse) || d->n_strip || (is_fallback && d->has_fuse)) {
        return hf_refuse(err, "decoder", jr_get(v, "type"), supported);
    }
    d->has_byte_fallback = d->has_byte_fallback || is_fallback;
    d->has_fuse = d->has_fuse || is_fuse;
    return hf_only_keys(v, "decoder", plain_keys, err);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* "<0x0A>" and the like. */
static bool is_byte_token(slice text, char *byte)
{
    if (text.len != 6 || memcmp(text.data, "<0x", 3) != 0 || text.data[5] != '>') {
        return false;
    }
    int high = hex_digit(text.data[3]), low = hex_digit(text.data[4]);
    *byte = (char)(high * 16 + low);
    return high >= 0 && low >= 0;
}

/* Every occurrence in *text, into *out. */
static smoe_status replace_all(const replacement *r, slice text, buf *out, smoe_err *err)
{
    buf_clear(out);
    for (size_t i = 0; i < text.len;) {
        if (slice_starts(slice_of(text.data + i, text.len - i), r->from)) {
            TRY(buf_append_slice(out, r->to, err));
            i += r->from.len;
        } else {
            TRY(buf_putc(out, text.data[i++], err));
        }
    }
    return SMOE_OK;
}

static smoe_status decode_token(smoe_tokenizer *tok, const decoder *d, vocab_token *token,
                                buf scratch[2], smoe_err *err)
{
    slice text = slice_of(token->key, token->key_len);
    char byte;
    for (size_t i = 0; i < d->n_replacements; i++) {
        TRY(replace_all(&d->replacements[i], text, &scratch[i % 2], err));
        text = buf_slice(&scratch[i % 2]);
    }
    if (d->has_byte_fallback && is_byte_token(text, &byte)) {
        text = slice_of(&byte, 1);
    }
    if (!slice_eq(text, slice_of(token->key, token->key_len))) {
        token->data = arena_strndup(&tok->vocab.bytes, text.data, text.len);
        token->len = (uint32_t)text.len;
        if (!token->data) {
            return err_nomem(err, "the text of a token", text.len);
        }
    }
    return SMOE_OK;
}

smoe_status hf_read_decoder(smoe_tokenizer *tok, const json_value *v, smoe_err *err)
{
    decoder d = {.n_replacements = 0};
    smoe_status status = SMOE_OK;
    buf scratch[2];
    if (jr_is_null(v)) {
        return hf_refuse(err, "decoder", v, supported);
    }
    TRY(read_decoder(&d, v, 0, err));
    bool is_other = d.n_replacements || d.has_byte_fallback || d.has_fuse;
    if (d.is_byte_level != tok->vocab.is_byte_level || (d.is_byte_level && is_other)) {
        return hf_refuse(err, "decoder", jr_get(v, "type"),
                         tok->vocab.is_byte_level ? "\"ByteLevel\" alone, because pre_tokenizer "
                                                    "ends in ByteLevel"
                                                  : "others than \"ByteLevel\", because "
                                                    "pre_tokenizer does not end in ByteLevel");
    }
    tok->n_strip = d.n_strip;
    tok->drops_first_spaces = d.drops_first_spaces;
    buf_init(&scratch[0], 64 * VOCAB_MAX_TOKEN_BYTES);
    buf_init(&scratch[1], 64 * VOCAB_MAX_TOKEN_BYTES);
    for (uint32_t id = 0; id < tok->vocab.n_ids && is_other; id++) {
        if (tok->vocab.tokens[id].kind != VOCAB_NONE) {
            CHECK(decode_token(tok, &d, &tok->vocab.tokens[id], scratch, err));
        }
    }
out:
    buf_fini(&scratch[0]);
    buf_fini(&scratch[1]);
    return status;
}
