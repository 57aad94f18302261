/* decoder.c: see decoder.h. Bytes -> characters -> reasoning and answer -> up to a stop string. */
#include "http/decoder.h"

static void on_content(void *ctx, slice text)
{
    decoder *d = ctx;
    if (text.len > 0) {
        job_put_text(d->job, HTTP_EVENT_CONTENT, 0, text);
    }
}

static void on_split(void *ctx, bool is_reasoning, slice text)
{
    decoder *d = ctx;
    if (text.len == 0) {
        return;
    }
    if (is_reasoning) {
        job_put_text(d->job, HTTP_EVENT_REASONING, 0, text);
        return;
    }
    smoe_err err;
    smoe_status status = stop_push(&d->stop, text, &err);
    d->status = status != SMOE_OK ? status : d->status;
}

void decoder_init(decoder *d, job *j)
{
    const smoe_tokenizer *tok = smoe_chat_format_tokenizer(j->format);
    bool has_tags = j->request.is_chat && smoe_tokenizer_find(tok, "</think>", 8) >= 0;
    *d = (decoder){.job = j, .status = SMOE_OK};
    for (size_t i = 0; i < j->request.n_stops; i++) {
        d->stops[i] = buf_slice(&j->request.stops[i]);
    }
    smoe_detok_init(&d->detok, tok);
    stop_init(&d->stop, d->stops, j->request.n_stops, on_content, d);
    reasoning_init(&d->split, has_tags,
                   has_tags && reasoning_is_open(tok, j->ids.data, j->ids.len), on_split, d);
}

void decoder_fini(decoder *d)
{
    stop_fini(&d->stop);
}

void decoder_token(decoder *d, int32_t id)
{
    char small[1024];
    const char *bytes;
    size_t n_bytes = 0, n;
    d->n_tokens++;
    d->n_reasoning += reasoning_is_inside(&d->split);
    smoe_tokenizer_bytes(d->detok.tok, id, &bytes, &n_bytes, NULL);
    size_t need = 3 * n_bytes + 16;
    if (need <= sizeof small) {
        n = smoe_detok_push(&d->detok, id, small, sizeof small);
        reasoning_push(&d->split, slice_of(small, n != SIZE_MAX ? n : 0));
        return;
    }
    buf large;
    smoe_err err;
    buf_init(&large, need);
    smoe_status status = buf_reserve(&large, need, &err);
    if (status == SMOE_OK) {
        n = smoe_detok_push(&d->detok, id, large.data, need);
        reasoning_push(&d->split, slice_of(large.data, n != SIZE_MAX ? n : 0));
    } else {
        d->status = status;
    }
    buf_fini(&large);
}

void decoder_finish(decoder *d)
{
    char rest[64];
    size_t n = smoe_detok_finish(&d->detok, rest, sizeof rest);
    reasoning_push(&d->split, slice_of(rest, n != SIZE_MAX ? n : 0));
    reasoning_finish(&d->split);
    stop_finish(&d->stop);
}

bool decoder_stopped(const decoder *d)
{
    return stop_found(&d->stop);
}
