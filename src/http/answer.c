/* answer.c: the events of one reply put together, for clients that do not stream. See events.h. */
#include "base/mem.h"
#include "http/events.h"

enum { ANSWER_MAX_BYTES = 256 << 20 };

void http_answer_init(http_answer *a)
{
    *a = (http_answer){.n_calls = 0};
    buf_init(&a->content, ANSWER_MAX_BYTES);
    buf_init(&a->reasoning, ANSWER_MAX_BYTES);
}

void http_answer_fini(http_answer *a)
{
    buf_fini(&a->content);
    buf_fini(&a->reasoning);
    for (size_t i = 0; i < a->n_calls; i++) {
        buf_fini(&a->calls[i].name);
        buf_fini(&a->calls[i].arguments);
    }
    mem_free(a->calls);
    mem_free(a->logprobs);
}

static smoe_status begin_call(http_answer *a, slice name, smoe_err *err)
{
    http_tool_call *calls = mem_realloc(a->calls, (a->n_calls + 1) * sizeof *calls);
    if (calls == NULL) {
        return err_nomem(err, "a tool call", sizeof *calls);
    }
    a->calls = calls;
    http_tool_call *call = &calls[a->n_calls++];
    buf_init(&call->name, ANSWER_MAX_BYTES);
    buf_init(&call->arguments, ANSWER_MAX_BYTES);
    return buf_append_slice(&call->name, name, err);
}

static smoe_status add_logprobs(http_answer *a, const smoe_logprobs *logprobs, smoe_err *err)
{
    size_t n = a->n_logprobs;
    if ((n & (n - 1)) == 0) { /* full: the room is a power of two */
        size_t room = n > 0 ? 2 * n : 1;
        smoe_logprobs *grown = mem_realloc(a->logprobs, room * sizeof *grown);
        if (grown == NULL) {
            return err_nomem(err, "log-probabilities", room * sizeof *grown);
        }
        a->logprobs = grown;
    }
    a->logprobs[a->n_logprobs++] = *logprobs;
    return SMOE_OK;
}

smoe_status http_answer_add(http_answer *a, const http_event *event, smoe_err *err)
{
    switch (event->kind) {
    case HTTP_EVENT_REASONING:
        return buf_append_slice(&a->reasoning, event->text, err);
    case HTTP_EVENT_CONTENT:
        return buf_append_slice(&a->content, event->text, err);
    case HTTP_EVENT_TOOL_BEGIN:
        return begin_call(a, event->text, err);
    case HTTP_EVENT_TOOL_INPUT:
        return a->n_calls > 0
                   ? buf_append_slice(&a->calls[a->n_calls - 1].arguments, event->text, err)
                   : SMOE_OK;
    case HTTP_EVENT_LOGPROBS:
        return add_logprobs(a, event->logprobs, err);
    case HTTP_EVENT_END:
        a->end = *event->end;
        return SMOE_OK;
    default:
        return SMOE_OK;
    }
}
