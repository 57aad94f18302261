/* read_tokenizer.c: see read_tokenizer.h. */
#include "app/read_tokenizer.h"

#include "base/buf.h"

enum { EMBEDDED_MAX_BYTES = 256 << 20 };

smoe_status app_read_tokenizer(const scout *s, smoe_tokenizer **out, smoe_err *err)
{
    smoe_status status;
    buf text;
    buf_init(&text, EMBEDDED_MAX_BYTES);
    if (scout_has_file(s, SCOUT_COMPILED_TOKENIZER)) {
        CHECK(scout_read_file(s, SCOUT_COMPILED_TOKENIZER, &text, err));
        status = smoe_tokenizer_open_compiled(text.data, text.len,
                                              scout_file_checksum(s, "tokenizer.json"), out, err);
        if (status != SMOE_MISMATCH) {
            goto out;
        }
        buf_clear(&text);
    }
    CHECK(scout_read_file(s, "tokenizer.json", &text, err));
    CHECK(smoe_tokenizer_new(text.data, text.len, out, err));
out:
    buf_fini(&text);
    return status;
}
