/* report.c: what a person or a program is told about a turn. */
#include <stdio.h>

#include "base/clock.h"
#include "chat/console.h"
#include "json/json_write.h"

enum {
    BAR_CELLS = 20,
    DEFAULT_SILENCE_MS = 30000,
    FULL_PERCENT = 85,
    RECORD_MAX_BYTES = 160 << 20
};

static const uint64_t second_ns = 1000000000u;

static void add_rates(char *text, size_t size, const ask *a, const smoe_reply *done)
{
    size_t n = 0;
    /* The engine's own clock: tokens that arrive in one read would look infinitely fast here. */
    if (a->n_tokens > 0 && done->decode_s > 0) {
        n += (size_t)snprintf(text + n, size - n, ", %.1f tok/s",
                              (double)a->n_tokens / done->decode_s);
    }
    if (a->n_tokens > 0) {
        n += (size_t)snprintf(text + n, size - n, ", first token after %.2f s",
                              (double)(a->first_ns - a->start_ns) / (double)second_ns);
    }
    if (done->hit >= 0) {
        snprintf(text + n, size - n, ", hit rate %.0f %%", 100 * done->hit);
    }
}

/* Prompt and answer are in the context now. */
static uint64_t n_used(const console *c, const ask *a)
{
    return c->ids.len + a->n_tokens;
}

static void warn_when_full(console *c, const ask *a)
{
    uint64_t percent = 100 * n_used(c, a) / c->options->n_ctx;
    if (percent >= FULL_PERCENT) {
        render_notice(&c->render,
                      "[the context is %u %% full; /compact drops the oldest turns, /reset starts "
                      "anew]", (unsigned)(percent < 100 ? percent : 100));
    }
}

void report_figures(console *c, const ask *a, const smoe_reply *done)
{
    char rates[128] = "";
    c->figures.n_answers++;
    c->figures.n_generated += a->n_tokens;
    c->figures.n_prompt += done->n_prompt;
    c->figures.n_cached += done->n_cached;
    c->figures.prefill_s += done->prefill_s > 0 ? done->prefill_s : 0;
    c->figures.decode_s += done->decode_s > 0 ? done->decode_s : 0;
    bool watched = c->terminal && c->options->prompt == NULL;
    if (!watched && !c->options->stats) {
        return;
    }
    add_rates(rates, sizeof rates, a, done);
    const char *why = "";
    if (strcmp(done->fin, "cancel") == 0) {
        why = ", stopped";
    } else if (strcmp(done->fin, "length") == 0) {
        why = n_used(c, a) >= c->options->n_ctx ? ", the context is full: /compact or /reset"
                                                : ", stopped at --max-tokens";
    }
    render_figures(&c->render, "[%llu token%s%s, context %llu of %u%s]",
                   (unsigned long long)a->n_tokens, a->n_tokens == 1 ? "" : "s", rates,
                   (unsigned long long)n_used(c, a), c->options->n_ctx, why);
    warn_when_full(c, a);
}

void report_refusal(console *c, const smoe_reply *reply)
{
    if (strcmp(reply->error, "ctx_overflow") == 0) {
        render_notice(&c->render,
                      "[the conversation has %zu tokens, the context holds %u: this message was "
                      "dropped; /compact makes room, /reset starts a new conversation]",
                      c->ids.len, c->options->n_ctx);
        return;
    }
    render_notice(&c->render, "[the engine could not answer: %s]", reply->error);
    render_quote(&c->render, engine_log_tail(&c->log));
}

/* While nothing has been said yet, after half a second. */
void report_waiting(console *c, const ask *a, const smoe_reply *progress)
{
    uint64_t waited_ns = clock_ns() - a->start_ns;
    if (a->n_tokens > 0 || waited_ns < second_ns / 2) {
        return;
    }
    if (progress->total == 0) {
        render_transient(&c->render, "[waiting for the engine, %u s]",
                         (unsigned)(waited_ns / second_ns));
        return;
    }
    char bar[BAR_CELLS + 1], left[48] = "";
    double part = (double)progress->done / (double)progress->total;
    part = part < 1 ? part : 1;
    for (int i = 0; i < BAR_CELLS; i++) {
        bar[i] = i < (int)(part * BAR_CELLS) ? '#' : '-';
    }
    bar[BAR_CELLS] = '\0';
    if (part > 0.02) {
        snprintf(left, sizeof left, ", %.0f s left",
                 (double)waited_ns / (double)second_ns * (1 - part) / part);
    }
    render_transient(&c->render, "[reading %llu of %llu tokens, %u %% %s%s]",
                     (unsigned long long)progress->done, (unsigned long long)progress->total,
                     (unsigned)(100 * part), bar, left);
}

/* Once per request: nothing has come for long, neither tokens nor progress. */
void report_silence(console *c, ask *a)
{
    uint32_t ms = c->options->silence_ms ? c->options->silence_ms : DEFAULT_SILENCE_MS;
    uint64_t now = clock_ns();
    if (!a->silence_said && a->cancel_ns == 0 && now - a->heard_ns > (uint64_t)ms * 1000000u) {
        a->silence_said = true;
        render_notice(&c->render, "[no sign of life from the engine for %u s%s]", ms / 1000,
                      c->terminal ? "; Ctrl-C stops this answer" : "");
    }
}

void report_json_error(console *c, const char *error)
{
    buf out;
    json_writer w;
    buf_init(&out, RECORD_MAX_BYTES);
    jw_init(&w, &out);
    jw_begin_object(&w);
    jw_key(&w, "error");
    jw_cstr(&w, error);
    jw_end_object(&w);
    if (jw_finish(&w, NULL) == SMOE_OK) {
        render_record(&c->render, buf_slice(&out));
    }
    buf_fini(&out);
}

static void put_seconds(json_writer *w, const char *key, double seconds)
{
    if (seconds >= 0) {
        jw_key(w, key);
        jw_number(w, seconds);
    }
}

void report_json(console *c, const ask *a, const smoe_reply *done)
{
    buf out;
    json_writer w;
    buf_init(&out, RECORD_MAX_BYTES);
    jw_init(&w, &out);
    jw_begin_object(&w);
    jw_key(&w, "content");
    jw_string(&w, buf_slice(&c->answer));
    if (c->reasoning.len > 0) {
        jw_key(&w, "reasoning_content");
        jw_string(&w, buf_slice(&c->reasoning));
    }
    jw_key(&w, "fin");
    jw_cstr(&w, done->fin);
    jw_key(&w, "n_prompt");
    jw_uint(&w, c->ids.len);
    jw_key(&w, "n_cached");
    jw_uint(&w, done->n_cached);
    jw_key(&w, "n_generated");
    jw_uint(&w, a->n_tokens);
    put_seconds(&w, "prefill_s", done->prefill_s);
    put_seconds(&w, "decode_s", done->decode_s);
    put_seconds(&w, "hit", done->hit);
    jw_end_object(&w);
    if (jw_finish(&w, NULL) == SMOE_OK) {
        render_record(&c->render, buf_slice(&out));
    }
    buf_fini(&out);
}
