/* answer.c: tokens into text; reasoning and answer told apart, kept, shown. The console offers no
 * tools, so a tool call that a model makes up is text. */
#include "base/clock.h"
#include "chat/console.h"

/* What is past a cap is still shown; the transcript keeps the start. */
static void hear(void *ctx, const reply_event *event)
{
    ask *a = ctx;
    console *c = a->console;
    bool is_reasoning = event->kind == REPLY_REASONING;
    if (!is_reasoning && a->reasoning_ns != 0) {
        double seconds = (double)(clock_ns() - a->reasoning_ns) / 1e9;
        a->reasoning_ns = 0;
        if (c->show_reasoning) {
            render_reasoning_end(&c->render);
        } else if (c->terminal) {
            render_notice(&c->render, "[thought for %.1f s; /think shows it]", seconds);
        }
    }
    buf_append_slice(is_reasoning ? &c->reasoning : &c->answer, event->text, NULL);
    if (!is_reasoning) {
        render_answer(&c->render, event->text);
    } else if (c->show_reasoning) {
        render_reasoning(&c->render, event->text);
    } else if (a->n_reasoning % 8 == 1) { /* not for every token */
        render_transient(&c->render, "[thinking, %llu tokens]", (unsigned long long)a->n_reasoning);
    }
}

void answer_begin(ask *a, console *c)
{
    const smoe_tokenizer *tok = smoe_chat_format_tokenizer(c->options->format);
    *a = (ask){.start_ns = clock_ns(), .heard_ns = clock_ns(), .console = c};
    smoe_detok_init(&a->detok, tok);
    const reply_options options = {
        .has_think_tags = c->has_think_tags,
        .starts_inside = c->has_think_tags && reasoning_is_open(tok, c->ids.data, c->ids.len),
    };
    reply_parser_init(&a->parser, &options, hear, a);
    buf_clear(&c->answer);
    buf_clear(&c->reasoning);
}

static void push_text(ask *a, const char *text, size_t n_bytes)
{
    if (n_bytes > 0 && n_bytes != SIZE_MAX) {
        reply_parser_push(&a->parser, slice_of(text, n_bytes), NULL);
    }
}

void answer_token(ask *a, int32_t id)
{
    char small[512];
    const char *bytes;
    size_t n_bytes;
    a->first_ns = a->first_ns != 0 ? a->first_ns : clock_ns();
    a->n_tokens++;
    if (reply_parser_is_reasoning(&a->parser)) {
        a->reasoning_ns = a->reasoning_ns != 0 ? a->reasoning_ns : clock_ns();
        a->n_reasoning++;
    }
    smoe_tokenizer_bytes(a->detok.tok, id, &bytes, &n_bytes, NULL);
    if (3 * n_bytes + 16 <= sizeof small) {
        push_text(a, small, smoe_detok_push(&a->detok, id, small, sizeof small));
        return;
    }
    buf large;
    buf_init(&large, 3 * n_bytes + 16);
    if (buf_reserve(&large, 3 * n_bytes + 16, NULL) == SMOE_OK) {
        push_text(a, large.data, smoe_detok_push(&a->detok, id, large.data, 3 * n_bytes + 16));
    }
    buf_fini(&large);
}

void answer_finish(ask *a)
{
    char rest[64];
    push_text(a, rest, smoe_detok_finish(&a->detok, rest, sizeof rest));
    reply_parser_finish(&a->parser, NULL);
}
