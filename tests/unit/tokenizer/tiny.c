/* tiny.c: see tiny.h. */
#include "tiny.h"

static const char default_pre_tokenizer[] =
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"
    "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}|"
    " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},"
    "\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\",\"add_prefix_space\":"
    "false,"
    "\"trim_offsets\":false,\"use_regex\":false}]}";

static const char default_merges[] =
    "[[\"h\",\"e\"],[\"l\",\"l\"],[\"he\",\"ll\"],[\"hell\",\"o\"],"
    "[\"\\u0120\",\"w\"],[\"o\",\"r\"],[\"w\",\"or\"],[\"a\",\"a\"],"
    "[\"aa\",\"aa\"],\"h a\"]";

static void put(buf *out, const char *text)
{
    smoe_err err;
    ASSERT_OK(buf_puts(out, text, &err), &err);
}

static bool is_printable(unsigned byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
}

unsigned tiny_code_of_byte(unsigned char byte)
{
    unsigned code = 0x100;
    for (unsigned b = 0; b < byte; b++) {
        code += !is_printable(b);
    }
    return is_printable(byte) ? byte : code;
}

static void put_byte_vocab(buf *out)
{
    smoe_err err;
    for (unsigned b = 0; b < 256; b++) {
        ASSERT_OK(buf_printf(out, &err, "%s\"\\u%04x\":%u", b ? "," : "",
                             tiny_code_of_byte((unsigned char)b), b), &err);
    }
}

static const char *or_default(const char *given, const char *fallback)
{
    return given ? given : fallback;
}

void tiny_json(const tiny_spec *spec, buf *out)
{
    buf_init(out, 1 << 24);
    put(out, "{");
    put(out, or_default(spec->root_extra, ""));
    put(out, "\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":");
    put(out, or_default(spec->added, "[]"));
    put(out, ",\"normalizer\":");
    put(out, or_default(spec->normalizer, "{\"type\":\"NFC\"}"));
    put(out, ",\"pre_tokenizer\":");
    put(out, or_default(spec->pre_tokenizer, default_pre_tokenizer));
    put(out, ",\"post_processor\":");
    put(out, or_default(spec->post_processor, "null"));
    put(out, ",\"decoder\":");
    put(out, or_default(spec->decoder, "{\"type\":\"ByteLevel\"}"));
    put(out, ",\"model\":{\"type\":\"BPE\",");
    put(out, or_default(spec->model_extra, ""));
    put(out, "\"vocab\":{");
    put_byte_vocab(out);
    put(out,
        ",\"he\":256,\"ll\":257,\"hell\":258,\"hello\":259,\"\\u0120w\":260,\"or\":261,\"wor\":262,"
        "\"aa\":263,\"aaaa\":264,\"ha\":265");
    put(out, or_default(spec->vocab_extra, ""));
    put(out, "},\"merges\":");
    put(out, or_default(spec->merges, default_merges));
    put(out, "}}");
}

smoe_status tiny_load(const tiny_spec *spec, smoe_tokenizer **tok, smoe_err *err)
{
    buf json;
    tiny_json(spec, &json);
    *tok = NULL;
    smoe_status status = smoe_tokenizer_new(json.data, json.len, tok, err);
    buf_fini(&json);
    return status;
}

smoe_tokenizer *tiny_tokenizer(const tiny_spec *spec)
{
    smoe_tokenizer *tok;
    smoe_err err;
    ASSERT_OK(tiny_load(spec, &tok, &err), &err);
    return tok;
}

void tiny_check(const smoe_tokenizer *tok, const char *text, size_t len, const int32_t *ids,
                size_t n)
{
    smoe_ids found = {0};
    smoe_err err;
    ASSERT_OK(smoe_tokenizer_encode(tok, text, len, &found, &err), &err);
    for (size_t i = 0; i < n && i < found.len; i++) {
        if (found.data[i] != ids[i]) {
            fail_msg("\"%s\": id %zu is %d, expected %d", text, i, found.data[i], ids[i]);
        }
    }
    assert_int_equal(found.len, n);
    smoe_ids_free(&found);
}
