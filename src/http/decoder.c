/* decoder.c: see decoder.h. Bytes -> characters -> reasoning, content, calls -> events. */
#include "http/decoder.h"

static bool had_its_call(const decoder *d)
{
    return d->job->request.one_tool_call && d->n_calls > 0;
}

static void hear(void *ctx, const reply_event *event)
{
    static const enum http_event_kind kinds[] = {
        [REPLY_REASONING] = HTTP_EVENT_REASONING,
        [REPLY_CONTENT] = HTTP_EVENT_CONTENT,
        [REPLY_CALL] = HTTP_EVENT_TOOL_BEGIN,
        [REPLY_CALL_ARGUMENTS] = HTTP_EVENT_TOOL_INPUT,
        [REPLY_CALL_END] = HTTP_EVENT_TOOL_END,
    };
    decoder *d = ctx;
    if (event->kind == REPLY_STOPPED) {
        d->i_stop = event->i;
    } else if (!had_its_call(d)) {
        job_put_text(d->job, kinds[event->kind], (uint32_t)event->i, event->text);
        d->n_calls += event->kind == REPLY_CALL_END;
    }
}

void decoder_init(decoder *d, job *j)
{
    const smoe_tokenizer *tok = smoe_chat_format_tokenizer(j->format);
    bool has_tags = j->request.is_chat && smoe_tokenizer_find(tok, "</think>", 8) >= 0;
    *d = (decoder){.job = j, .status = SMOE_OK};
    for (size_t i = 0; i < j->request.n_stops; i++) {
        d->stops[i] = buf_slice(&j->request.stops[i]);
    }
    const reply_options options = {
        .has_think_tags = has_tags,
        .starts_inside = has_tags && reasoning_is_open(tok, j->ids.data, j->ids.len),
        .has_tools = j->request.has_tools,
        .tools = jr_get(j->variables, "tools"),
        .stop = d->stops,
        .n_stop = j->request.n_stops,
    };
    smoe_detok_init(&d->detok, tok);
    reply_parser_init(&d->parser, &options, hear, d);
}

void decoder_fini(decoder *d)
{
    reply_parser_fini(&d->parser);
}

static void push(decoder *d, const char *text, size_t n_bytes)
{
    smoe_err err;
    if (n_bytes > 0 && n_bytes != SIZE_MAX && d->status == SMOE_OK) {
        d->status = reply_parser_push(&d->parser, slice_of(text, n_bytes), &err);
    }
}

void decoder_token(decoder *d, int32_t id, const smoe_logprobs *logprobs)
{
    char small[1024];
    const char *bytes;
    size_t n_bytes = 0;
    smoe_err err;
    d->n_tokens++;
    d->n_reasoning += reply_parser_is_reasoning(&d->parser);
    if (logprobs != NULL && !reply_parser_is_reasoning(&d->parser)) {
        job_put_logprobs(d->job, logprobs);
    }
    smoe_tokenizer_bytes(d->detok.tok, id, &bytes, &n_bytes, NULL);
    size_t need = 3 * n_bytes + 16;
    if (need <= sizeof small) {
        push(d, small, smoe_detok_push(&d->detok, id, small, sizeof small));
        return;
    }
    buf large;
    buf_init(&large, need);
    smoe_status status = buf_reserve(&large, need, &err);
    if (status == SMOE_OK) {
        push(d, large.data, smoe_detok_push(&d->detok, id, large.data, need));
    } else {
        d->status = status;
    }
    buf_fini(&large);
}

void decoder_finish(decoder *d)
{
    char rest[64];
    smoe_err err;
    push(d, rest, smoe_detok_finish(&d->detok, rest, sizeof rest));
    if (d->status == SMOE_OK) {
        d->status = reply_parser_finish(&d->parser, &err);
    }
}

bool decoder_stopped(const decoder *d)
{
    return reply_parser_stopped(&d->parser);
}

bool decoder_done(const decoder *d)
{
    return decoder_stopped(d) || had_its_call(d);
}
