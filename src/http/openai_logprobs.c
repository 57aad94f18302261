/* openai_logprobs.c: log-probabilities as chat completions have them. */
#include "http/openai.h"
#include "tokenizer/utf8.h"

enum { TOKEN_MAX_BYTES = 4096 };

/* A token may be a part of a character: its bytes say which, its text has U+FFFD for it. */
static void put_text(json_writer *w, slice bytes)
{
    buf text;
    buf_init(&text, TOKEN_MAX_BYTES);
    for (size_t i = 0, n; i < bytes.len; i += n) {
        uint32_t code;
        slice rest = {bytes.data + i, bytes.len - i};
        bool is_char = utf8_step(rest, &n, &code) == UTF8_CHAR;
        buf_append_slice(&text, is_char ? (slice){rest.data, n} : slice_from(UTF8_REPLACEMENT),
                         NULL);
    }
    jw_string(w, buf_slice(&text));
    buf_fini(&text);
}

static void put_one(json_writer *w, const http_reply *reply, const smoe_logprob *one)
{
    slice bytes = {"", 0};
    if (reply->tokenizer != NULL) {
        smoe_tokenizer_bytes(reply->tokenizer, one->id, &bytes.data, &bytes.len, NULL);
    }
    jw_key(w, "token");
    put_text(w, bytes);
    jw_key(w, "logprob");
    jw_number(w, one->logprob);
    jw_key(w, "bytes");
    jw_begin_array(w);
    for (size_t i = 0; i < bytes.len; i++) {
        jw_uint(w, (unsigned char)bytes.data[i]);
    }
    jw_end_array(w);
}

void openai_logprobs(json_writer *w, const http_reply *reply, const smoe_logprobs *logprobs,
                     size_t n)
{
    jw_key(w, "logprobs");
    if (n == 0) {
        jw_null(w);
        return;
    }
    jw_begin_object(w);
    jw_key(w, "content");
    jw_begin_array(w);
    for (size_t i = 0; i < n; i++) {
        jw_begin_object(w);
        put_one(w, reply, &logprobs[i].chosen);
        jw_key(w, "top_logprobs");
        jw_begin_array(w);
        for (uint32_t k = 0; k < logprobs[i].n_top; k++) {
            jw_begin_object(w);
            put_one(w, reply, &logprobs[i].top[k]);
            jw_end_object(w);
        }
        jw_end_array(w);
        jw_end_object(w);
    }
    jw_end_array(w);
    jw_key(w, "refusal");
    jw_null(w);
    jw_end_object(w);
}
