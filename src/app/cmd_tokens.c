/* cmd_tokens.c: smoe tokens: what a model's tokenizer makes of a text, or of ids. For debugging:
 * special tokens and control characters are shown. */
#include <stdio.h>
#include <string.h>

#include "app/app.h"
#include "app/args.h"
#include "app/read_tokenizer.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/opts.h"
#include "json/json_write.h"
#include "tokenizer/utf8.h"

enum { MAX_INPUT_BYTES = 256 << 20 };

struct tokens {
    const char *argv[2]; /* MODEL TEXT, or one of them */
    size_t n_argv;
    const char *ids_text;
    bool json, help;
    scout s;
    smoe_tokenizer *tok;
    smoe_ids ids;
    buf text;
};

static smoe_status read_stdin(buf *out, smoe_err *err)
{
    char piece[65536];
    size_t n;
    while ((n = fread(piece, 1, sizeof piece, stdin)) > 0) {
        TRY(buf_append(out, piece, n, err));
    }
    return ferror(stdin) ? err_errno(err, SMOE_IO, "standard input cannot be read") : SMOE_OK;
}

static smoe_status check_ids(const struct tokens *t, smoe_err *err)
{
    const char *bytes;
    size_t len;
    for (size_t i = 0; i < t->ids.len; i++) {
        int32_t id = t->ids.data[i];
        if (!smoe_tokenizer_bytes(t->tok, id, &bytes, &len, NULL)) {
            return err_set(err, SMOE_USAGE,
                           "%d is not a token id of this model: its tokenizer has ids from 0 to %u",
                           id, smoe_tokenizer_n_vocab(t->tok) - 1);
        }
    }
    return SMOE_OK;
}

/* U+0080..U+009F, which terminals obey. */
static bool is_c1(const char *bytes, size_t i, size_t len)
{
    const unsigned char *s = (const unsigned char *)bytes;
    return (s[i] == 0xC2 && i + 1 < len && s[i + 1] < 0xA0) ||
           (i > 0 && s[i - 1] == 0xC2 && s[i] >= 0x80 && s[i] < 0xA0);
}

/* In quotes, with escapes; what is not printable ASCII as it is only where it is whole characters
 * outside the control ranges. */
static void print_piece(const char *bytes, size_t len)
{
    bool is_whole = utf8_valid_prefix(slice_of(bytes, len)) == len;
    putchar('"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c == '\n' || c == '\r' || c == '\t') {
            printf("\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        } else if (c == '"' || c == '\\') {
            printf("\\%c", c);
        } else if (c < 0x20 || c == 0x7F || (c >= 0x80 && !is_whole) || is_c1(bytes, i, len)) {
            printf("\\x%02X", c);
        } else {
            putchar(c);
        }
    }
    putchar('"');
}

/* Everything that the ids stand for, special tokens left out, as a console would print it. */
static smoe_status decode(const struct tokens *t, buf *out, smoe_err *err)
{
    smoe_detok d;
    smoe_detok_init(&d, t->tok);
    for (size_t i = 0; i <= t->ids.len; i++) {
        const char *bytes;
        size_t len = 0;
        if (i < t->ids.len) {
            smoe_tokenizer_bytes(t->tok, t->ids.data[i], &bytes, &len, NULL);
        }
        TRY(buf_reserve(out, 3 * len + 16, err));
        size_t room = 3 * len + 16;
        out->len += i < t->ids.len
                        ? smoe_detok_push(&d, t->ids.data[i], out->data + out->len, room)
                        : smoe_detok_finish(&d, out->data + out->len, room);
    }
    return SMOE_OK;
}

static void print_table(const struct tokens *t)
{
    for (size_t i = 0; i < t->ids.len; i++) {
        const char *bytes;
        size_t len;
        bool is_special;
        smoe_tokenizer_bytes(t->tok, t->ids.data[i], &bytes, &len, &is_special);
        printf("%8d  ", t->ids.data[i]);
        print_piece(bytes, len);
        puts(is_special ? "  special" : "");
    }
    printf("%zu token%s\n", t->ids.len, t->ids.len == 1 ? "" : "s");
}

static smoe_status print_json(const struct tokens *t, smoe_err *err)
{
    buf out, text;
    json_writer w;
    smoe_status status;
    buf_init(&out, SIZE_MAX / 2);
    buf_init(&text, SIZE_MAX / 2);
    CHECK(decode(t, &text, err));
    jw_init(&w, &out);
    jw_begin_object(&w);
    jw_key(&w, "ids");
    jw_begin_array(&w);
    for (size_t i = 0; i < t->ids.len; i++) {
        jw_int(&w, t->ids.data[i]);
    }
    jw_end_array(&w);
    jw_key(&w, "text");
    jw_string(&w, text.len ? buf_slice(&text) : slice_of("", 0));
    jw_end_object(&w);
    CHECK(jw_finish(&w, err));
    printf("%s\n", out.data);
out:
    buf_fini(&out);
    buf_fini(&text);
    return status;
}

static smoe_status run(struct tokens *t, smoe_err *err)
{
    smoe_status status;
    char *vault_path = NULL, *scout_path = NULL;
    bool has_text = !t->ids_text && t->n_argv > 0;
    const char *model = t->n_argv == (has_text ? 2u : 1u) ? t->argv[0] : NULL;
    CHECK(app_find_model(model, &vault_path, &scout_path, err));
    CHECK(scout_open(&t->s, scout_path, err));
    CHECK(app_read_tokenizer(&t->s, &t->tok, err));
    if (t->ids_text) {
        CHECK(args_parse_ids(t->ids_text, "ids", &t->ids, err));
        CHECK(check_ids(t, err));
    } else {
        const char *text = has_text ? t->argv[t->n_argv - 1] : "-";
        bool is_stdin = strcmp(text, "-") == 0;
        CHECK(is_stdin ? read_stdin(&t->text, err) : buf_puts(&t->text, text, err));
        CHECK(smoe_tokenizer_encode(t->tok, t->text.data, t->text.len, &t->ids, err));
    }
    if (t->json) {
        CHECK(print_json(t, err));
    } else if (t->ids_text) {
        buf_clear(&t->text);
        CHECK(decode(t, &t->text, err));
        print_table(t);
        print_piece(t->text.data, t->text.len);
        putchar('\n');
    } else {
        print_table(t);
    }
    if (fflush(stdout) != 0) {
        CHECK(err_errno(err, SMOE_IO, "standard output cannot be written"));
    }
out:
    scout_close(&t->s);
    smoe_tokenizer_free(t->tok);
    smoe_ids_free(&t->ids);
    mem_free(vault_path);
    mem_free(scout_path);
    return status;
}

int cmd_tokens(int argc, char **argv)
{
    struct tokens t = {.s = {.st = {.file = FILE_CLOSED}}};
    smoe_err err;
    const opt table[] = {
        {.name = "ids",
         .kind = OPT_TEXT,
         .dest = &t.ids_text,
         .arg = "IDS",
         .help = "the other way round: 1,2,3 into text"},
        {.name = "json",
         .kind = OPT_FLAG,
         .dest = &t.json,
         .help = "one JSON object instead of text"},
        {.name = "help", .kind = OPT_FLAG, .dest = &t.help, .help = "this text"},
        {.name = NULL},
    };
    buf_init(&t.text, MAX_INPUT_BYTES);
    if (opts_parse(table, argc, argv, 1, t.argv, 2, &t.n_argv, &err) != SMOE_OK) {
        return app_fail("tokens", &err);
    }
    if (t.help) {
        char text[2048];
        opts_help(table, text, sizeof text);
        printf("usage: smoe tokens [MODEL] TEXT        TEXT \"-\": what comes on standard input\n"
               "       smoe tokens [MODEL] --ids IDS\n\n%s",
               text);
        return 0;
    }
    if (t.ids_text ? t.n_argv > 1 : t.n_argv == 0) {
        err_set(&err, SMOE_USAGE, t.ids_text ? "give a text or --ids, not both"
                                             : "say what to look at: a text, \"-\", or --ids IDS");
        return app_fail("tokens", &err);
    }
    smoe_status status = run(&t, &err);
    buf_fini(&t.text);
    return status == SMOE_OK ? 0 : app_fail("tokens", &err);
}
