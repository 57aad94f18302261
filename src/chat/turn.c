/* turn.c: one turn: the whole conversation goes to the engine, one answer comes back; an engine
 * that dies on the way is replaced and asked once more. */
#include "chat/console.h"

#include <stdio.h>

#include "base/clock.h"

enum { MESSAGES_MAX_BYTES = 256 << 20, DEFAULT_STOP_TIMEOUT_MS = 10000 };

static const uint64_t second_ns = 1000000000u;

enum ask_end {
    ASK_ANSWERED,
    ASK_STOPPED, /* by Ctrl-C */
    ASK_REFUSED, /* <<ERR ...>>, explained */
    ASK_DIED,
    ASK_HUNG,    /* did not react to CANCEL */
    ASK_LEAVE,
};

typedef struct ask {
    uint64_t start_ns, first_ns;          /* of the request, of its first token; 0 = none yet */
    uint64_t cancel_ns;                   /* when CANCEL was sent; 0 = not */
    uint64_t n_tokens;
    smoe_detok detok;
} ask;

static void show_text(console *c, const char *text, size_t n_bytes)
{
    if (n_bytes > 0 && n_bytes != SIZE_MAX) {
        /* An answer past the cap is still shown; the transcript keeps its start. */
        buf_append(&c->answer, text, n_bytes, NULL);
        render_answer(&c->render, slice_of(text, n_bytes));
    }
}

static void take_token(console *c, ask *a, int32_t id)
{
    const smoe_tokenizer *tok = a->detok.tok;
    char small[512];
    const char *bytes;
    size_t n_bytes;
    a->first_ns = a->first_ns != 0 ? a->first_ns : clock_ns();
    a->n_tokens++;
    smoe_tokenizer_bytes(tok, id, &bytes, &n_bytes, NULL);
    if (3 * n_bytes + 16 <= sizeof small) {
        show_text(c, small, smoe_detok_push(&a->detok, id, small, sizeof small));
        return;
    }
    buf large;
    buf_init(&large, 3 * n_bytes + 16);
    if (buf_reserve(&large, 3 * n_bytes + 16, NULL) == SMOE_OK) {
        show_text(c, large.data, smoe_detok_push(&a->detok, id, large.data, 3 * n_bytes + 16));
    }
    buf_fini(&large);
}

static void finish_text(console *c, ask *a)
{
    char rest[64];
    show_text(c, rest, smoe_detok_finish(&a->detok, rest, sizeof rest));
}

static void show_figures(console *c, const ask *a, const smoe_reply *done)
{
    if (!c->terminal && !c->options->stats) {
        return;
    }
    char rate[48] = "", first[64] = "";
    /* The engine's own clock: tokens that arrive in one read would look infinitely fast here. */
    if (a->n_tokens > 0 && done->decode_s > 0) {
        snprintf(rate, sizeof rate, ", %.1f tok/s", (double)a->n_tokens / done->decode_s);
    }
    if (a->n_tokens > 0) {
        snprintf(first, sizeof first, ", first token after %.2f s",
                 (double)(a->first_ns - a->start_ns) / (double)second_ns);
    }
    const char *why = "";
    if (strcmp(done->fin, "cancel") == 0) {
        why = ", stopped";
    } else if (strcmp(done->fin, "length") == 0) {
        bool full = c->ids.len + a->n_tokens >= c->options->n_ctx;
        why = full ? ", the context is full: /reset" : ", stopped at --max-tokens";
    }
    render_figures(&c->render, "[%llu token%s%s%s%s]", (unsigned long long)a->n_tokens,
                   a->n_tokens == 1 ? "" : "s", rate, first, why);
}

static void explain_refusal(console *c, const smoe_reply *reply)
{
    if (strcmp(reply->error, "ctx_overflow") == 0) {
        render_notice(&c->render,
                      "[the conversation has %zu tokens, the context holds %u: this message was "
                      "dropped; /reset starts a new conversation]",
                      c->ids.len, c->options->n_ctx);
        return;
    }
    render_notice(&c->render, "[the engine could not answer: %s]", reply->error);
    render_quote(&c->render, engine_log_tail(&c->log));
}

/* While nothing has been said yet, after half a second. */
static void show_waiting(console *c, const ask *a, const smoe_reply *progress)
{
    uint64_t waited_ns = clock_ns() - a->start_ns;
    if (a->n_tokens > 0 || waited_ns < second_ns / 2) {
        return;
    }
    if (progress->total > 0) {
        render_transient(&c->render, "[reading %llu of %llu tokens, %u %%]",
                         (unsigned long long)progress->done, (unsigned long long)progress->total,
                         (unsigned)(100.0 * (double)progress->done / (double)progress->total));
    } else {
        render_transient(&c->render, "[waiting for the engine, %u s]",
                         (unsigned)(waited_ns / second_ns));
    }
}

static bool check_interrupts(console *c, ask *a)
{
    switch (console_interrupts(c)) {
    case CTRL_C_NONE:
        return true;
    case CTRL_C_STOP:
        if (a->cancel_ns == 0) {
            a->cancel_ns = clock_ns();
            smoe_client_cancel(c->client, NULL);
        }
        return true;
    case CTRL_C_LEAVE:
        break;
    }
    return false;
}

static bool hangs(const console *c, const ask *a)
{
    uint32_t ms = c->options->stop_timeout_ms;
    ms = ms != 0 ? ms : DEFAULT_STOP_TIMEOUT_MS;
    return a->cancel_ns != 0 && clock_ns() - a->cancel_ns > (uint64_t)ms * 1000000u;
}

static smoe_status send_request(console *c, smoe_err *err)
{
    uint32_t n_ctx = c->options->n_ctx;
    uint32_t left = c->ids.len < n_ctx ? n_ctx - (uint32_t)c->ids.len : 1;
    uint32_t max = c->options->max_tokens;
    smoe_client_request request = {
        .ids = c->ids.data,
        .n_ids = c->ids.len,
        .max_tokens = max != 0 && max < left ? max : left,
    };
    engine_log_mark(&c->log);
    return smoe_client_send(c->client, &request, err);
}

static enum ask_end ask_once(console *c, smoe_err *err)
{
    ask a = {.start_ns = clock_ns()};
    smoe_reply reply, progress = {0};
    smoe_detok_init(&a.detok, smoe_chat_format_tokenizer(c->options->format));
    buf_clear(&c->answer);
    smoe_status status = send_request(c, err);
    if (status != SMOE_OK) {
        render_notice(&c->render, "[%s]", err->text);
        return ASK_REFUSED;
    }
    while (true) {
        if (!check_interrupts(c, &a)) {
            return ASK_LEAVE;
        }
        if (hangs(c, &a)) {
            return ASK_HUNG;
        }
        if (c->render.broken_errno != 0) {
            return ASK_LEAVE; /* nobody reads the answers any more */
        }
        if (smoe_client_next(c->client, WAIT_SLICE_MS, &reply, err) != SMOE_OK) {
            return ASK_DIED;
        }
        switch (reply.kind) {
        case SMOE_REPLY_TOKEN:
            take_token(c, &a, reply.id);
            break;
        case SMOE_REPLY_PROGRESS:
            progress = reply;
            show_waiting(c, &a, &progress);
            break;
        case SMOE_REPLY_TIMEOUT:
            show_waiting(c, &a, &progress);
            break;
        case SMOE_REPLY_DONE:
            finish_text(c, &a);
            render_answer_end(&c->render);
            show_figures(c, &a, &reply);
            return strcmp(reply.fin, "cancel") == 0 ? ASK_STOPPED : ASK_ANSWERED;
        case SMOE_REPLY_ERROR:
            explain_refusal(c, &reply);
            return ASK_REFUSED;
        }
    }
}

static bool restart(console *c, smoe_err *err)
{
    c->engine_down = smoe_client_restart(c->client, err) != SMOE_OK;
    if (c->engine_down) {
        render_notice(&c->render, "[%s]", err->text);
    }
    return !c->engine_down;
}

/* Asks; after a death asks once more. What was shown of the first answer stays on the screen, but
 * only the second one counts. */
static enum ask_end ask_twice(console *c, smoe_err *err)
{
    for (int attempt = 0;; attempt++) {
        if (c->engine_down && !restart(c, err)) {
            buf_clear(&c->answer);
            return ASK_REFUSED;
        }
        enum ask_end end = ask_once(c, err);
        if (end != ASK_DIED && end != ASK_HUNG) {
            return end;
        }
        char how[64] = "does not stop";
        if (end == ASK_DIED) {
            snprintf(how, sizeof how, "died (exit %d)", smoe_client_exit_status(c->client));
        }
        bool again = end == ASK_DIED && attempt == 0;
        bool restarting = again || end == ASK_HUNG;
        c->engine_down = true;
        if (c->render.answer_open) {
            render_answer_end(&c->render);
        }
        console_engine_died(c, how, restarting);
        if (!again) {
            if (restarting) {
                restart(c, err);
            }
            return end;
        }
        if (c->answer.len > 0) {
            render_notice(&c->render, "[the answer starts again from its beginning]");
        }
    }
}

static smoe_status encode(console *c, smoe_err *err)
{
    buf json;
    buf_init(&json, MESSAGES_MAX_BYTES);
    c->ids.len = 0;
    smoe_status status = transcript_json(&c->transcript, &json, err);
    if (status == SMOE_OK) {
        status =
            smoe_chat_format_encode(c->options->format, json.data, json.len, NULL, &c->ids, err);
    }
    buf_fini(&json);
    return status;
}

/* The answer joins the user's message in the transcript, or the message leaves it. */
static void keep_or_drop(console *c, enum ask_end end)
{
    smoe_err err;
    bool said_something = c->answer.len > 0;
    if (end == ASK_ANSWERED || said_something) {
        if (transcript_add(&c->transcript, "assistant", buf_slice(&c->answer), end != ASK_ANSWERED,
                           &err) == SMOE_OK) {
            return;
        }
        render_notice(&c->render, "[%s]", err.text);
    }
    transcript_drop_last(&c->transcript);
}

bool turn_run(console *c, slice text)
{
    smoe_err err = {0};
    c->n_turns++;
    smoe_status status = transcript_add(&c->transcript, "user", text, false, &err);
    if (status == SMOE_OK) {
        status = encode(c, &err);
        if (status != SMOE_OK) {
            transcript_drop_last(&c->transcript);
        }
    }
    if (status != SMOE_OK) {
        c->n_failed++;
        render_notice(&c->render, "[this message cannot be sent: %s]", err.text);
        return true;
    }
    enum ask_end end = ask_twice(c, &err);
    if (c->render.answer_open) {
        render_answer_end(&c->render);
    }
    if (end == ASK_LEAVE) {
        return false;
    }
    keep_or_drop(c, end);
    c->n_failed += end != ASK_ANSWERED && end != ASK_STOPPED;
    return true;
}
