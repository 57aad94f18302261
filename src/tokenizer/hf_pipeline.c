/* hf_pipeline.c: reads the normalizer and the pre_tokenizer of tokenizer.json. */
#include <stdio.h>

#include "tokenizer/hf_json.h"
#include "tokenizer/pattern.h"
#include "tokenizer/utf8.h"

/* Those of the reference's libraries: digits of Unicode 17, \w of Unicode Technical Standard 18,
 * punctuation of Unicode 8 with the ASCII symbols. */
static const char digit_pattern[] = "[\\p{N}\\x{11de0}-\\x{11de9}\\x{16ff4}-\\x{16ff6}]";
static const char space_pattern[] = "\\s";
static const char punctuation_pattern[] =
    "[$+<=>\\^`|~\\p{P}\\x{166d}\\x{111c9}&&[^"
    "\\x{61d}\\x{9fd}\\x{a76}\\x{c77}\\x{c84}\\x{1b4e}-\\x{1b4f}\\x{1b7d}-\\x{1b7f}"
    "\\x{2e43}-\\x{2e4f}\\x{2e52}-\\x{2e5d}\\x{10d6e}\\x{10ead}\\x{10f55}-\\x{10f59}"
    "\\x{10f86}-\\x{10f89}\\x{113d4}-\\x{113d5}\\x{113d7}-\\x{113d8}\\x{1144b}-\\x{1144f}"
    "\\x{1145a}-\\x{1145b}\\x{1145d}\\x{11660}-\\x{1166c}\\x{116b9}\\x{1183b}"
    "\\x{11944}-\\x{11946}\\x{119e2}\\x{11a3f}-\\x{11a46}\\x{11a9a}-\\x{11a9c}"
    "\\x{11a9e}-\\x{11aa2}\\x{11b00}-\\x{11b09}\\x{11be1}\\x{11c41}-\\x{11c45}"
    "\\x{11c70}-\\x{11c71}\\x{11ef7}-\\x{11ef8}\\x{11f43}-\\x{11f4f}\\x{11fff}"
    "\\x{12ff1}-\\x{12ff2}\\x{16d6d}-\\x{16d6f}\\x{16e97}-\\x{16e9a}\\x{16fe2}\\x{1e5ff}"
    "\\x{1e95e}-\\x{1e95f}"
    "]]";
#define WORD                                                                                       \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}"                    \
    "\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}\\x{200c}\\x{200d}"
static const char word_pattern[] = "[" WORD "]+|[^\\s" WORD "]+";

/* A pattern that matches exactly this text. */
static smoe_status literal_regex(slice text, regex **out, smoe_err *err)
{
    buf pattern;
    smoe_status status = SMOE_OK;
    buf_init(&pattern, 16 * PATTERN_MAX_BYTES);
    for (size_t i = 0; i < text.len;) {
        uint32_t code;
        i += utf8_get(text.data + i, &code);
        CHECK(buf_printf(&pattern, err, "\\x{%x}", code));
    }
    CHECK(regex_new(buf_slice(&pattern), REGEX_TABLE_OR_PCRE2, out, err));
out:
    buf_fini(&pattern);
    return status;
}

/* {"Regex": ...} or {"String": ...}. */
static smoe_status read_pattern(const json_value *v, const char *where, regex **out, smoe_err *err)
{
    static const char *const keys[] = {"Regex", "String", NULL};
    char name[64];
    slice s;
    snprintf(name, sizeof name, "%s pattern", where);
    TRY(hf_only_keys(v, name, keys, err));
    if (jr_len(v) == 1 && jr_string(jr_get(v, "String"), &s)) {
        return literal_regex(s, out, err);
    }
    if (jr_len(v) != 1 || !jr_string(jr_get(v, "Regex"), &s)) {
        return hf_refuse(err, name, v, "a \"Regex\" or a \"String\"");
    }
    return regex_new(s, REGEX_TABLE_OR_PCRE2, out, err);
}

/* --- normalizer ------------------------------------------------------------------------------- */

static smoe_status add_prepend(normalizer *n, const json_value *v, smoe_err *err)
{
    static const char *const keys[] = {"type", "prepend", NULL};
    normalizer_step step = {.kind = NORMALIZER_PREPEND};
    TRY(hf_only_keys(v, "normalizer (Prepend)", keys, err));
    if (!jr_string(jr_get(v, "prepend"), &step.text)) {
        return hf_refuse(err, "normalizer (Prepend) prepend", jr_get(v, "prepend"), "a text");
    }
    return normalizer_add(n, &step, err);
}

static smoe_status add_replace(normalizer *n, const json_value *v, smoe_err *err)
{
    static const char *const keys[] = {"type", "pattern", "content", NULL};
    normalizer_step step = {.kind = NORMALIZER_REPLACE};
    TRY(hf_only_keys(v, "normalizer (Replace)", keys, err));
    if (!jr_string(jr_get(v, "content"), &step.text)) {
        return hf_refuse(err, "normalizer (Replace) content", jr_get(v, "content"), "a text");
    }
    TRY(read_pattern(jr_get(v, "pattern"), "normalizer (Replace)", &step.pattern, err));
    return normalizer_add(n, &step, err);
}

static smoe_status read_normalizer(normalizer *n, const json_value *v, int depth, smoe_err *err)
{
    static const struct {
        const char *name;
        normalizer_step step;
    } plain[] = {
        {"NFC", {.kind = NORMALIZER_FORM, .form = NORMAL_NFC}},
        {"NFD", {.kind = NORMALIZER_FORM, .form = NORMAL_NFD}},
        {"NFKC", {.kind = NORMALIZER_FORM, .form = NORMAL_NFKC}},
        {"NFKD", {.kind = NORMALIZER_FORM, .form = NORMAL_NFKD}},
        {"Lowercase", {.kind = NORMALIZER_LOWERCASE}},
        {"StripAccents", {.kind = NORMALIZER_STRIP_ACCENTS}},
    };
    static const char *const plain_keys[] = {"type", NULL};
    static const char *const keys[] = {"type", "normalizers", NULL};
    if (jr_is_null(v)) {
        return SMOE_OK;
    }
    if (hf_type_is(v, "Prepend")) {
        return add_prepend(n, v, err);
    }
    if (hf_type_is(v, "Replace")) {
        return add_replace(n, v, err);
    }
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if (hf_type_is(v, plain[i].name)) {
            normalizer_step step = plain[i].step;
            TRY(hf_only_keys(v, "normalizer", plain_keys, err));
            step.text = slice_of("", 0);
            return normalizer_add(n, &step, err);
        }
    }
    if (!hf_type_is(v, "Sequence") || depth == HF_MAX_NESTED_SEQUENCES) {
        return hf_refuse(err, "normalizer", jr_get(v, "type"),
                         "null, \"NFC\", \"NFD\", \"NFKC\", \"NFKD\", \"Prepend\", \"Replace\", "
                         "\"Lowercase\", \"StripAccents\" and a \"Sequence\" of them");
    }
    TRY(hf_only_keys(v, "normalizer", keys, err));
    const json_value *list = jr_get(v, "normalizers");
    for (size_t i = 0; i < jr_len(list); i++) {
        TRY(read_normalizer(n, jr_at(list, i), depth + 1, err));
    }
    return SMOE_OK;
}

smoe_status hf_read_normalizer(normalizer *n, const json_value *v, smoe_err *err)
{
    return read_normalizer(n, v, 0, err);
}

/* --- pre_tokenizer ---------------------------------------------------------------------------- */

static smoe_status read_behavior(const json_value *v, const char *where, enum split_behavior *out,
                                 smoe_err *err)
{
    static const char *const names[] = {"Isolated", "Removed", "Contiguous", "MergedWithPrevious",
                                        "MergedWithNext"};
    slice s;
    for (size_t i = 0; jr_string(v, &s) && i < sizeof names / sizeof names[0]; i++) {
        if (slice_is(s, names[i])) {
            *out = (enum split_behavior)i;
            return SMOE_OK;
        }
    }
    char name[64];
    snprintf(name, sizeof name, "%s behavior", where);
    return hf_refuse(err, name, v,
                     "\"Isolated\", \"Removed\", \"Contiguous\", \"MergedWithPrevious\" and "
                     "\"MergedWithNext\"");
}

static smoe_status add_split(pretokenizer *p, const json_value *v, smoe_err *err)
{
    static const char where[] = "pre_tokenizer (Split)";
    static const char *const keys[] = {"type", "pattern", "behavior", "invert", NULL};
    pretokenize_stage stage = {.kind = STAGE_SPLIT};
    TRY(hf_only_keys(v, where, keys, err));
    TRY(read_behavior(jr_get(v, "behavior"), where, &stage.behavior, err));
    TRY(hf_read_flag(v, where, "invert", &stage.invert, err));
    TRY(read_pattern(jr_get(v, "pattern"), where, &stage.pattern, err));
    return pretokenize_add(p, &stage, err);
}

static smoe_status add_pattern(pretokenizer *p, const char *pattern, enum split_behavior behavior,
                               bool invert, smoe_err *err)
{
    pretokenize_stage stage = {.kind = STAGE_SPLIT, .behavior = behavior, .invert = invert};
    TRY(regex_new(slice_from(pattern), REGEX_TABLE_OR_PCRE2, &stage.pattern, err));
    return pretokenize_add(p, &stage, err);
}

static smoe_status add_byte_level(pretokenizer *p, const json_value *v, smoe_err *err)
{
    static const char where[] = "pre_tokenizer (ByteLevel)";
    static const char *const keys[] = {"type", "add_prefix_space", "trim_offsets", "use_regex",
                                       NULL};
    bool use_regex = true, add_prefix_space = true;
    TRY(hf_only_keys(v, where, keys, err));
    TRY(hf_read_flag(v, where, "add_prefix_space", &add_prefix_space, err));
    TRY(hf_read_flag(v, where, "use_regex", &use_regex, err));
    if (add_prefix_space) {
        TRY(pretokenize_add(p, &(pretokenize_stage){.kind = STAGE_SPACE}, err));
    }
    return use_regex ? add_pattern(p, pretokenize_gpt2_pattern, SPLIT_ISOLATED, false, err)
                     : SMOE_OK;
}

static smoe_status add_digits(pretokenizer *p, const json_value *v, smoe_err *err)
{
    static const char *const keys[] = {"type", "individual_digits", NULL};
    bool individual = false;
    TRY(hf_only_keys(v, "pre_tokenizer (Digits)", keys, err));
    TRY(hf_read_flag(v, "pre_tokenizer (Digits)", "individual_digits", &individual, err));
    return add_pattern(p, digit_pattern, individual ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS, false,
                       err);
}

static smoe_status add_punctuation(pretokenizer *p, const json_value *v, smoe_err *err)
{
    static const char where[] = "pre_tokenizer (Punctuation)";
    static const char *const keys[] = {"type", "behavior", NULL};
    enum split_behavior behavior = SPLIT_ISOLATED;
    TRY(hf_only_keys(v, where, keys, err));
    if (jr_get(v, "behavior")) {
        TRY(read_behavior(jr_get(v, "behavior"), where, &behavior, err));
    }
    return add_pattern(p, punctuation_pattern, behavior, false, err);
}

static smoe_status add_whitespace(pretokenizer *p, const json_value *v, bool words, smoe_err *err)
{
    static const char *const keys[] = {"type", NULL};
    TRY(hf_only_keys(v, "pre_tokenizer", keys, err));
    return add_pattern(p, words ? word_pattern : space_pattern, SPLIT_REMOVED, words, err);
}

static smoe_status read_prepend_scheme(const json_value *v, const char *where,
                                       enum prepend_scheme *out, smoe_err *err)
{
    static const char *const names[] = {"always", "first", "never"};
    const json_value *scheme = jr_get(v, "prepend_scheme");
    bool add_prefix_space = true, known = !scheme;
    slice s;
    *out = PREPEND_ALWAYS;
    TRY(hf_read_flag(v, where, "add_prefix_space", &add_prefix_space, err));
    for (int i = 0; jr_string(scheme, &s) && i < 3; i++) {
        if (slice_is(s, names[i])) {
            *out = (enum prepend_scheme)i;
            known = true;
        }
    }
    if (!known || (!add_prefix_space && *out != PREPEND_NEVER)) {
        return hf_refuse(err, "the prepend_scheme of Metaspace", scheme,
                         "\"always\", \"first\" and \"never\", which alone goes with "
                         "add_prefix_space false");
    }
    return SMOE_OK;
}

smoe_status hf_read_metaspace(const json_value *v, const char *where, pretokenize_stage *out,
                              smoe_err *err)
{
    static const char *const keys[] = {"type", "replacement", "add_prefix_space",
                                       "prepend_scheme", "split", "str_rep", NULL};
    slice s;
    bool split = true;
    uint32_t code;
    *out = (pretokenize_stage){.kind = STAGE_METASPACE, .behavior = SPLIT_MERGED_WITH_NEXT};
    TRY(hf_only_keys(v, where, keys, err));
    if (!jr_string(jr_get(v, "replacement"), &s) || s.len == 0 || s.len > sizeof out->mark ||
        utf8_get(s.data, &code) != s.len) {
        return hf_refuse(err, "the replacement of Metaspace", jr_get(v, "replacement"),
                         "one character");
    }
    memcpy(out->mark, s.data, s.len);
    out->mark_len = s.len;
    TRY(read_prepend_scheme(v, where, &out->prepend, err));
    TRY(hf_read_flag(v, where, "split", &split, err));
    return split ? literal_regex(s, &out->pattern, err) : SMOE_OK;
}

/* Any number of parts; ByteLevel, if it is there, is the last. Sequences may nest. */
static smoe_status read_pre_tokenizer(pretokenizer *p, const json_value *v, int depth,
                                      bool *is_byte_level, smoe_err *err)
{
    static const char *const keys[] = {"type", "pretokenizers", NULL};
    pretokenize_stage stage;
    if (*is_byte_level) {
        return hf_refuse(err, "the pre_tokenizer after ByteLevel", jr_get(v, "type"), "none");
    }
    if (hf_type_is(v, "ByteLevel")) {
        *is_byte_level = true;
        return add_byte_level(p, v, err);
    }
    if (hf_type_is(v, "Split")) {
        return add_split(p, v, err);
    }
    if (hf_type_is(v, "Digits")) {
        return add_digits(p, v, err);
    }
    if (hf_type_is(v, "Punctuation")) {
        return add_punctuation(p, v, err);
    }
    if (hf_type_is(v, "Whitespace") || hf_type_is(v, "WhitespaceSplit")) {
        return add_whitespace(p, v, hf_type_is(v, "Whitespace"), err);
    }
    if (hf_type_is(v, "Metaspace")) {
        TRY(hf_read_metaspace(v, "pre_tokenizer (Metaspace)", &stage, err));
        return pretokenize_add(p, &stage, err);
    }
    if (!hf_type_is(v, "Sequence") || depth == HF_MAX_NESTED_SEQUENCES) {
        return hf_refuse(err, "pre_tokenizer", jr_get(v, "type"),
                         "null, \"ByteLevel\", \"Split\", \"Digits\", \"Punctuation\", "
                         "\"Whitespace\", \"WhitespaceSplit\", \"Metaspace\" and a \"Sequence\" "
                         "of them");
    }
    TRY(hf_only_keys(v, "pre_tokenizer", keys, err));
    const json_value *list = jr_get(v, "pretokenizers");
    for (size_t i = 0; i < jr_len(list); i++) {
        TRY(read_pre_tokenizer(p, jr_at(list, i), depth + 1, is_byte_level, err));
    }
    return SMOE_OK;
}

smoe_status hf_read_pre_tokenizer(pretokenizer *p, const json_value *v, bool *is_byte_level,
                                  smoe_err *err)
{
    *is_byte_level = false;
    return jr_is_null(v) ? SMOE_OK : read_pre_tokenizer(p, v, 0, is_byte_level, err);
}
