/* answer.c: tokens into text; reasoning and answer told apart, kept, shown. */
#include "base/clock.h"
#include "chat/console.h"

/* What is past a cap is still shown; the transcript keeps the start. */
static void hear(void *ctx, bool is_reasoning, slice text)
{
    ask *a = ctx;
    console *c = a->console;
    if (!is_reasoning && a->reasoning_ns != 0) {
        double seconds = (double)(clock_ns() - a->reasoning_ns) / 1e9;
        a->reasoning_ns = 0;
        if (c->show_reasoning) {
            render_reasoning_end(&c->render);
        } else if (c->terminal) {
            render_notice(&c->render, "[thought for %.1f s; /think shows it]", seconds);
        }
    }
    buf_append_slice(is_reasoning ? &c->reasoning : &c->answer, text, NULL);
    if (!is_reasoning) {
        render_answer(&c->render, text);
    } else if (c->show_reasoning) {
        render_reasoning(&c->render, text);
    } else if (a->n_reasoning % 8 == 1) { /* not for every token */
        render_transient(&c->render, "[thinking, %llu tokens]", (unsigned long long)a->n_reasoning);
    }
}

void answer_begin(ask *a, console *c)
{
    const smoe_tokenizer *tok = smoe_chat_format_tokenizer(c->options->format);
    *a = (ask){.start_ns = clock_ns(), .heard_ns = clock_ns(), .console = c};
    smoe_detok_init(&a->detok, tok);
    reasoning_init(&a->split, c->has_think_tags,
                   c->has_think_tags && reasoning_is_open(tok, c->ids.data, c->ids.len), hear, a);
    buf_clear(&c->answer);
    buf_clear(&c->reasoning);
}

static void push_text(ask *a, const char *text, size_t n_bytes)
{
    if (n_bytes > 0 && n_bytes != SIZE_MAX) {
        reasoning_push(&a->split, slice_of(text, n_bytes));
    }
}

void answer_token(ask *a, int32_t id)
{
    char small[512];
    const char *bytes;
    size_t n_bytes;
    a->first_ns = a->first_ns != 0 ? a->first_ns : clock_ns();
    a->n_tokens++;
    if (reasoning_is_inside(&a->split)) {
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
    reasoning_finish(&a->split);
}
