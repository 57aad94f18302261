/* hf_load.c: reads the tokenizer.json of Hugging Face tokenizers (version 1.0). Takes byte-level
 * BPE as the GPT-2, Llama 3 and Qwen families publish it; whatever else the file asks for is
 * refused by name, because a tokenizer that is nearly right gives wrong answers without a word. */
#include <stdio.h>

#include "base/buf.h"
#include "json/json_read.h"
#include "tokenizer/normalize.h"
#include "tokenizer/tokenizer_parts.h"

enum { MAX_JSON_BYTES = 256 << 20, MAX_NESTED_SEQUENCES = 8 };

/* At most 48 bytes of a text, whole characters, for messages. */
static slice clip(slice s)
{
    size_t len = s.len < 48 ? s.len : 48;
    while (len > 0 && len < s.len && ((unsigned char)s.data[len] & 0xC0) == 0x80) {
        len--;
    }
    return slice_of(s.data, len);
}

/* "tokenizer.json: <where> is <value>; supported: <supported>". */
static smoe_status refuse(smoe_err *err, const char *where, const json_value *v,
                          const char *supported)
{
    slice text;
    int64_t number;
    bool flag;
    char value[80];
    if (jr_string(v, &text)) {
        snprintf(value, sizeof value, "\"%.*s\"", SLICE_ARG(clip(text)));
    } else if (jr_int(v, &number)) {
        snprintf(value, sizeof value, "%lld", (long long)number);
    } else if (jr_bool(v, &flag)) {
        snprintf(value, sizeof value, "%s", flag ? "true" : "false");
    } else {
        snprintf(value, sizeof value, "%s", v ? jr_kind_name(v) : "absent");
    }
    return err_set(err, SMOE_UNSUPPORTED, "tokenizer.json: %s is %s; supported: %s", where, value,
                   supported);
}

/* Every key of the object must be among the known ones (a NULL-terminated list). */
static smoe_status only_keys(const json_value *object, const char *where, const char *const *known,
                             smoe_err *err)
{
    if (jr_kind(object) != JSON_KIND_OBJECT) {
        return err_set(err, SMOE_FORMAT, "tokenizer.json: %s is %s; expected an object", where,
                       jr_kind_name(object));
    }
    for (void *it = jr_iter(object); it; it = jr_next(object, it)) {
        slice key = jr_iter_key(it);
        size_t i = 0;
        while (known[i] && !slice_is(key, known[i])) {
            i++;
        }
        if (!known[i]) {
            return err_set(err, SMOE_UNSUPPORTED,
                           "tokenizer.json: %s has the key \"%.*s\", whose meaning is not "
                           "known here",
                           where, SLICE_ARG(clip(key)));
        }
    }
    return SMOE_OK;
}

static bool type_is(const json_value *object, const char *type)
{
    slice s;
    return jr_string(jr_get(object, "type"), &s) && slice_is(s, type);
}

/* A boolean; when the key is absent it keeps the value it has. */
static smoe_status read_flag(const json_value *object, const char *where, const char *key,
                             bool *out, smoe_err *err)
{
    const json_value *v = jr_get(object, key);
    if (!v || jr_bool(v, out)) {
        return SMOE_OK;
    }
    return err_set(err, SMOE_FORMAT, "tokenizer.json: %s.%s is %s; expected true or false", where,
                   key, jr_kind_name(v));
}

/* null, absent or "". */
static bool is_nothing(const json_value *v)
{
    slice s;
    return jr_is_null(v) || (jr_string(v, &s) && s.len == 0);
}

static smoe_status read_vocab(smoe_tokenizer *tok, const json_value *entries, smoe_err *err)
{
    uint32_t n_ids = 0;
    if (jr_kind(entries) != JSON_KIND_OBJECT || jr_len(entries) == 0) {
        return err_set(err, SMOE_FORMAT,
                       "tokenizer.json: model.vocab is %s; expected an object with at least "
                       "one token",
                       entries ? jr_kind_name(entries) : "absent");
    }
    for (void *it = jr_iter(entries); it; it = jr_next(entries, it)) {
        int64_t id;
        slice text = jr_iter_key(it);
        if (!jr_int(jr_iter_value(it), &id) || id < 0 || id >= VOCAB_MAX_IDS) {
            return err_set(err, SMOE_FORMAT,
                           "tokenizer.json: model.vocab[\"%.*s\"] is not an id from 0 to %d",
                           SLICE_ARG(clip(text)), VOCAB_MAX_IDS - 1);
        }
        if (text.len > VOCAB_MAX_TOKEN_BYTES) {
            return err_set(err, SMOE_RANGE,
                           "tokenizer.json: token %lld of model.vocab has %zu bytes; the limit "
                           "is %d",
                           (long long)id, text.len, VOCAB_MAX_TOKEN_BYTES);
        }
        n_ids = (uint32_t)id >= n_ids ? (uint32_t)id + 1 : n_ids;
    }
    TRY(vocab_resize(&tok->vocab, n_ids, err));
    for (void *it = jr_iter(entries); it; it = jr_next(entries, it)) {
        int64_t id = 0;
        jr_int(jr_iter_value(it), &id);
        TRY(vocab_add(&tok->vocab, (uint32_t)id, jr_iter_key(it), err));
    }
    return vocab_build_index(&tok->vocab, err);
}

/* A merge is ["a", "b"] or, in older files, "a b". */
static bool split_merge(const json_value *v, slice *left, slice *right)
{
    slice line;
    if (jr_string(v, &line)) {
        const char *space = memchr(line.data, ' ', line.len);
        if (!space) {
            return false;
        }
        *left = slice_of(line.data, (size_t)(space - line.data));
        *right = slice_of(space + 1, line.len - left->len - 1);
        return !memchr(right->data, ' ', right->len);
    }
    return jr_len(v) == 2 && jr_string(jr_at(v, 0), left) && jr_string(jr_at(v, 1), right);
}

/* Looks up left + right. */
static smoe_status merge_id(const json_value *entries, size_t i, slice left, slice right,
                            buf *scratch, uint32_t *id, smoe_err *err)
{
    int64_t found;
    buf_clear(scratch);
    TRY(buf_append_slice(scratch, left, err));
    TRY(buf_append_slice(scratch, right, err));
    if (!jr_int(jr_get(entries, scratch->data), &found)) {
        return err_set(err, SMOE_FORMAT,
                       "tokenizer.json: model.merges[%zu] needs the token \"%.*s\", which "
                       "model.vocab "
                       "does not have",
                       i, SLICE_ARG(clip(buf_slice(scratch))));
    }
    *id = (uint32_t)found;
    return SMOE_OK;
}

static smoe_status read_merges(smoe_tokenizer *tok, const json_value *merges,
                               const json_value *entries, buf *scratch, smoe_err *err)
{
    size_t n = jr_len(merges);
    uint32_t rank = 0;
    if (jr_kind(merges) != JSON_KIND_ARRAY || n > BPE_MAX_MERGES) {
        return err_set(err, SMOE_FORMAT,
                       "tokenizer.json: model.merges is %s of %zu; expected an array of at most %d",
                       merges ? jr_kind_name(merges) : "absent", n, BPE_MAX_MERGES);
    }
    TRY(bpe_init(&tok->bpe, &tok->vocab, (uint32_t)n, err));
    for (size_t i = 0; i < n; i++) {
        slice left, right, line;
        bpe_merge merge;
        if (jr_string(jr_at(merges, i), &line) && slice_starts(line, slice_from("#version"))) {
            continue; /* the first line of the merges.txt that old files were made from */
        }
        if (!split_merge(jr_at(merges, i), &left, &right)) {
            return err_set(err, SMOE_FORMAT,
                           "tokenizer.json: model.merges[%zu] is %s; expected two tokens, as "
                           "[\"a\", \"b\"] or \"a b\"",
                           i, jr_kind_name(jr_at(merges, i)));
        }
        slice none = slice_of("", 0);
        TRY(merge_id(entries, i, left, none, scratch, &merge.left, err));
        TRY(merge_id(entries, i, right, none, scratch, &merge.right, err));
        TRY(merge_id(entries, i, left, right, scratch, &merge.merged, err));
        merge.rank = rank++;
        TRY(bpe_add(&tok->bpe, merge, err));
    }
    return SMOE_OK;
}

static smoe_status read_model(smoe_tokenizer *tok, const json_value *model, smoe_err *err)
{
    static const char *const keys[] = {"type",
                                       "dropout",
                                       "unk_token",
                                       "continuing_subword_prefix",
                                       "end_of_word_suffix",
                                       "fuse_unk",
                                       "byte_fallback",
                                       "ignore_merges",
                                       "vocab",
                                       "merges",
                                       NULL};
    bool byte_fallback = false, ignore_merges = false;
    double dropout = 0;
    if (!type_is(model, "BPE")) {
        return refuse(err, "model.type", jr_get(model, "type"), "\"BPE\"");
    }
    TRY(only_keys(model, "model", keys, err));
    const json_value *v = jr_get(model, "dropout");
    if (!jr_is_null(v) && !(jr_number(v, &dropout) && dropout == 0)) {
        return refuse(err, "model.dropout", v, "null");
    }
    if (!jr_is_null(v = jr_get(model, "unk_token"))) {
        return refuse(err, "model.unk_token", v, "null");
    }
    if (!is_nothing(v = jr_get(model, "continuing_subword_prefix"))) {
        return refuse(err, "model.continuing_subword_prefix", v, "null or \"\"");
    }
    if (!is_nothing(v = jr_get(model, "end_of_word_suffix"))) {
        return refuse(err, "model.end_of_word_suffix", v, "null or \"\"");
    }
    TRY(read_flag(model, "model", "byte_fallback", &byte_fallback, err));
    if (byte_fallback) {
        return refuse(err, "model.byte_fallback", jr_get(model, "byte_fallback"), "false");
    }
    TRY(read_flag(model, "model", "ignore_merges", &ignore_merges, err));
    const json_value *entries = jr_get(model, "vocab");
    TRY(read_vocab(tok, entries, err));
    buf scratch;
    buf_init(&scratch, 2 * MAX_JSON_BYTES);
    smoe_status status = read_merges(tok, jr_get(model, "merges"), entries, &scratch, err);
    buf_fini(&scratch);
    tok->bpe.ignore_merges = ignore_merges;
    return status;
}

static smoe_status read_normalizer(smoe_tokenizer *tok, const json_value *v, int depth,
                                   smoe_err *err)
{
    static const char *const keys[] = {"type", "normalizers", NULL};
    if (jr_is_null(v)) {
        return SMOE_OK;
    }
    bool is_sequence = type_is(v, "Sequence") && depth < MAX_NESTED_SEQUENCES;
    if (!is_sequence && !type_is(v, "NFC")) {
        return refuse(err, "normalizer", jr_get(v, "type"),
                      "null, \"NFC\" or a \"Sequence\" of NFC");
    }
    TRY(only_keys(v, "normalizer", keys, err));
    tok->nfc = tok->nfc || !is_sequence;
    const json_value *list = is_sequence ? jr_get(v, "normalizers") : NULL;
    for (size_t i = 0; i < jr_len(list); i++) {
        TRY(read_normalizer(tok, jr_at(list, i), depth + 1, err));
    }
    return SMOE_OK;
}

static smoe_status read_split(smoe_tokenizer *tok, const json_value *v, smoe_err *err)
{
    static const char *const keys[] = {"type", "pattern", "behavior", "invert", NULL};
    static const char *const pattern_keys[] = {"Regex", NULL};
    const json_value *pattern = jr_get(v, "pattern"), *behavior = jr_get(v, "behavior");
    slice s;
    bool invert = false;
    TRY(only_keys(v, "pre_tokenizer (Split)", keys, err));
    if (!jr_string(behavior, &s) || !slice_is(s, "Isolated")) {
        return refuse(err, "pre_tokenizer (Split) behavior", behavior, "\"Isolated\"");
    }
    TRY(read_flag(v, "pre_tokenizer (Split)", "invert", &invert, err));
    if (invert) {
        return refuse(err, "pre_tokenizer (Split) invert", jr_get(v, "invert"), "false");
    }
    TRY(only_keys(pattern, "pre_tokenizer (Split) pattern", pattern_keys, err));
    if (!jr_string(jr_get(pattern, "Regex"), &s)) {
        return refuse(err, "pre_tokenizer (Split) pattern.Regex", jr_get(pattern, "Regex"),
                      "a regular expression");
    }
    return pretokenize_add(&tok->pretokenizer, s, err);
}

static smoe_status read_byte_level(smoe_tokenizer *tok, const json_value *v, smoe_err *err)
{
    static const char *const keys[] = {"type", "add_prefix_space", "trim_offsets", "use_regex",
                                       NULL};
    pretokenizer *p = &tok->pretokenizer;
    bool use_regex = true;
    p->add_prefix_space = true;
    TRY(only_keys(v, "pre_tokenizer (ByteLevel)", keys, err));
    TRY(read_flag(v, "pre_tokenizer (ByteLevel)", "add_prefix_space", &p->add_prefix_space, err));
    TRY(read_flag(v, "pre_tokenizer (ByteLevel)", "use_regex", &use_regex, err));
    p->prefix_before = p->n_splits;
    return use_regex ? pretokenize_add(p, slice_from(pretokenize_gpt2_pattern), err) : SMOE_OK;
}

/* Splits, then one ByteLevel at the end; sequences may nest. */
static smoe_status read_pre_tokenizer(smoe_tokenizer *tok, const json_value *v, int depth,
                                      bool *has_byte_level, smoe_err *err)
{
    static const char *const keys[] = {"type", "pretokenizers", NULL};
    if (*has_byte_level) {
        return refuse(err, "the pre_tokenizer after ByteLevel", jr_get(v, "type"), "none");
    }
    if (type_is(v, "ByteLevel")) {
        *has_byte_level = true;
        return read_byte_level(tok, v, err);
    }
    if (type_is(v, "Split")) {
        return read_split(tok, v, err);
    }
    if (!type_is(v, "Sequence") || depth == MAX_NESTED_SEQUENCES) {
        return refuse(err, "pre_tokenizer", jr_get(v, "type"),
                      "\"ByteLevel\", or a \"Sequence\" of Split and then ByteLevel");
    }
    TRY(only_keys(v, "pre_tokenizer", keys, err));
    const json_value *list = jr_get(v, "pretokenizers");
    for (size_t i = 0; i < jr_len(list); i++) {
        TRY(read_pre_tokenizer(tok, jr_at(list, i), depth + 1, has_byte_level, err));
    }
    return SMOE_OK;
}

/* What these do is trim offsets or add special tokens: neither concerns us. */
static smoe_status check_post_processor(const json_value *v, int depth, smoe_err *err)
{
    if (jr_is_null(v) || type_is(v, "ByteLevel") || type_is(v, "TemplateProcessing")) {
        return SMOE_OK;
    }
    if (!type_is(v, "Sequence") || depth == MAX_NESTED_SEQUENCES) {
        return refuse(err, "post_processor", jr_get(v, "type"),
                      "null, \"ByteLevel\", \"TemplateProcessing\" or a \"Sequence\" of them");
    }
    const json_value *list = jr_get(v, "processors");
    for (size_t i = 0; i < jr_len(list); i++) {
        TRY(check_post_processor(jr_at(list, i), depth + 1, err));
    }
    return SMOE_OK;
}

typedef struct added_entry {
    slice content;
    int64_t id;
    bool single_word, lstrip, rstrip, normalized, special;
} added_entry;

static smoe_status read_added_entry(const json_value *v, size_t i, added_entry *out, smoe_err *err)
{
    static const char *const keys[] = {"id",     "content",    "single_word", "lstrip",
                                       "rstrip", "normalized", "special",     NULL};
    char where[40];
    snprintf(where, sizeof where, "added_tokens[%zu]", i);
    *out = (added_entry){.normalized = true};
    TRY(only_keys(v, where, keys, err));
    if (!jr_string(jr_get(v, "content"), &out->content) || out->content.len == 0 ||
        out->content.len > ADDED_MAX_BYTES) {
        return err_set(err, SMOE_FORMAT,
                       "tokenizer.json: %s.content is not a text of 1 to %d bytes", where,
                       ADDED_MAX_BYTES);
    }
    if (!jr_int(jr_get(v, "id"), &out->id) || out->id < 0 || out->id >= VOCAB_MAX_IDS) {
        return err_set(err, SMOE_FORMAT, "tokenizer.json: %s.id is not an id from 0 to %d", where,
                       VOCAB_MAX_IDS - 1);
    }
    TRY(read_flag(v, where, "single_word", &out->single_word, err));
    TRY(read_flag(v, where, "lstrip", &out->lstrip, err));
    TRY(read_flag(v, where, "rstrip", &out->rstrip, err));
    TRY(read_flag(v, where, "normalized", &out->normalized, err));
    return read_flag(v, where, "special", &out->special, err);
}

/* The reference ignores the id in the file: it takes the vocabulary's id, or the next free one. A
 * file in which the two differ means different things to different programs. */
static smoe_status check_added_id(const smoe_tokenizer *tok, const json_value *entries,
                                  const added_entry *entry, int64_t next, smoe_err *err)
{
    int64_t expected = next;
    bool in_vocab = jr_int(jr_get(entries, entry->content.data), &expected);
    if (entry->id != expected) {
        return err_set(err, SMOE_UNSUPPORTED,
                       "tokenizer.json: the added token \"%.*s\" says id %lld, but Hugging Face "
                       "tokenizers gives it %lld (%s); correct the file",
                       SLICE_ARG(clip(entry->content)), (long long)entry->id, (long long)expected,
                       in_vocab ? "its id in model.vocab" : "the next free one");
    }
    uint8_t kind = entry->id < tok->vocab.n_ids ? tok->vocab.tokens[entry->id].kind : VOCAB_NONE;
    if (kind != VOCAB_NONE && !in_vocab) {
        return err_set(err, SMOE_FORMAT,
                       "tokenizer.json: the added token \"%.*s\" has the id %lld of another token",
                       SLICE_ARG(clip(entry->content)), (long long)entry->id);
    }
    return SMOE_OK;
}

/* What reading the list needs besides the tokenizer. */
typedef struct added_reader {
    const json_value *entries; /* model.vocab */
    normalize_work normalize;
    added_set seen; /* all contents as they are in the file */
} added_reader;

static smoe_status add_to_sets(smoe_tokenizer *tok, added_reader *r, const added_entry *entry,
                               size_t order, smoe_err *err)
{
    added_token token = {.text = entry->content,
                         .order = order,
                         .id = (int32_t)entry->id,
                         .lstrip = entry->lstrip,
                         .rstrip = entry->rstrip,
                         .single_word = entry->single_word};
    TRY(added_add(&r->seen, &token, err));
    if (!entry->normalized) {
        return added_add(&tok->added_raw, &token, err);
    }
    if (tok->nfc) {
        TRY(normalize_nfc(&r->normalize, entry->content, &token.text, err));
    }
    return added_add(&tok->added_normalized, &token, err);
}

static smoe_status read_added_list(smoe_tokenizer *tok, added_reader *r, const json_value *list,
                                   smoe_err *err)
{
    size_t n = jr_len(list);
    int64_t next = (int64_t)jr_len(r->entries);
    if ((!jr_is_null(list) && jr_kind(list) != JSON_KIND_ARRAY) || n > ADDED_MAX_TOKENS) {
        return err_set(err, SMOE_FORMAT,
                       "tokenizer.json: added_tokens is %s of %zu; expected an array of at most %d",
                       jr_kind_name(list), n, ADDED_MAX_TOKENS);
    }
    for (size_t i = 0; i < n; i++) {
        added_entry entry;
        TRY(read_added_entry(jr_at(list, i), i, &entry, err));
        TRY(check_added_id(tok, r->entries, &entry, next, err));
        if (entry.id >= next) {
            TRY(vocab_resize(&tok->vocab, (uint32_t)(entry.id + 1), err));
            next = entry.id + 1;
        }
        TRY(vocab_add_added(&tok->vocab, (uint32_t)entry.id, entry.content, entry.special, err));
        /* Where normalisation makes two texts equal, the reference prefers special tokens. */
        TRY(add_to_sets(tok, r, &entry, entry.special ? i : n + i, err));
    }
    const added_token *twice = added_seal(&r->seen);
    if (twice) {
        return err_set(err, SMOE_FORMAT, "tokenizer.json: the added token \"%.*s\" is listed twice",
                       SLICE_ARG(clip(twice->text)));
    }
    added_seal(&tok->added_raw);
    added_seal(&tok->added_normalized);
    return SMOE_OK;
}

static smoe_status read_added(smoe_tokenizer *tok, const json_value *list,
                              const json_value *entries, smoe_err *err)
{
    added_reader r = {.entries = entries};
    normalize_init(&r.normalize);
    added_init(&r.seen);
    smoe_status status = read_added_list(tok, &r, list, err);
    normalize_fini(&r.normalize);
    added_fini(&r.seen);
    return status;
}

static smoe_status read_root(smoe_tokenizer *tok, const json_value *root, smoe_err *err)
{
    static const char *const keys[] = {
        "version",       "truncation",     "padding", "added_tokens", "normalizer",
        "pre_tokenizer", "post_processor", "decoder", "model",        NULL};
    const json_value *v;
    slice version;
    bool has_byte_level = false;
    TRY(only_keys(root, "the file", keys, err));
    if ((v = jr_get(root, "version")) && !(jr_string(v, &version) && slice_is(version, "1.0"))) {
        return refuse(err, "version", v, "\"1.0\"");
    }
    if (!jr_is_null(v = jr_get(root, "truncation"))) {
        return refuse(err, "truncation", v, "null");
    }
    if (!jr_is_null(v = jr_get(root, "padding"))) {
        return refuse(err, "padding", v, "null");
    }
    if (!type_is(v = jr_get(root, "decoder"), "ByteLevel")) {
        return refuse(err, "decoder", jr_get(v, "type"), "\"ByteLevel\"");
    }
    TRY(check_post_processor(jr_get(root, "post_processor"), 0, err));
    TRY(read_normalizer(tok, jr_get(root, "normalizer"), 0, err));
    TRY(read_pre_tokenizer(tok, jr_get(root, "pre_tokenizer"), 0, &has_byte_level, err));
    if (!has_byte_level) {
        return refuse(err, "pre_tokenizer", jr_get(root, "pre_tokenizer"),
                      "a ByteLevel, alone or at the end of a Sequence");
    }
    const json_value *model = jr_get(root, "model");
    TRY(read_model(tok, model, err));
    return read_added(tok, jr_get(root, "added_tokens"), jr_get(model, "vocab"), err);
}

smoe_status hf_load(smoe_tokenizer *tok, slice json, smoe_err *err)
{
    json_value *root = NULL;
    vocab_init(&tok->vocab);
    added_init(&tok->added_raw);
    added_init(&tok->added_normalized);
    pretokenize_init(&tok->pretokenizer);
    if (json.len > MAX_JSON_BYTES) {
        return err_set(err, SMOE_RANGE, "tokenizer.json has %zu bytes; the limit is %d", json.len,
                       MAX_JSON_BYTES);
    }
    TRY(jr_parse(json, "tokenizer.json", &root, err));
    smoe_status status = read_root(tok, root, err);
    jr_free(root);
    return status;
}
