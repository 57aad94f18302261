/* Every allocation of a request and of its reply is refused in turn: the answer is 500 or an error
 * of the writer, never a crash, a leak or half an answer that looks whole. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "http/format.h"
#include "http/job.h"

#define CALL                                                                                   \
    "{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"
#define TOOL "{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}"

static const struct {
    const http_format *format;
    const char *body;
} cases[] = {
    {&openai_chat_format,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"a\"},{\"role\":\"user\","
     "\"content\":[{\"type\":\"text\",\"text\":\"b\"}]},{\"role\":\"assistant\",\"content\":null,"
     "\"tool_calls\":[" CALL "]},{\"role\":\"tool\",\"content\":\"c\"}],\"stop\":[\"x\",\"y\"],"
     "\"tools\":[" TOOL "],\"stream_options\":{\"include_usage\":true},"
     "\"chat_template_kwargs\":{\"enable_thinking\":true}}"},
    {&openai_completion_format, "{\"model\":\"m\",\"prompt\":\"abc\",\"stop\":\"x\"}"},
    {&openai_completion_format, "{\"prompt\":[1,2,3]}"},
    {&openai_responses_format,
     "{\"input\":[{\"role\":\"user\",\"content\":\"a\"},{\"type\":\"function_call\",\"name\":\"f\","
     "\"arguments\":\"{}\"},{\"type\":\"function_call_output\",\"output\":\"b\"}],"
     "\"instructions\":\"c\",\"tools\":[{\"type\":\"function\",\"name\":\"f\"}]}"},
    {&anthropic_format,
     "{\"max_tokens\":5,\"system\":\"s\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
     "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"f\","
     "\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
     "\"tool_use_id\":\"1\",\"content\":\"b\"}]}],\"stop_sequences\":[\"x\"],"
     "\"tools\":[{\"name\":\"f\",\"input_schema\":{}}]}"},
};

enum { N_CASES = sizeof cases / sizeof *cases, MAX_ALLOCATIONS = 2000 };

static const http_reply reply = {
    .id = "0123456789abcdef0123456789abcdef", .created = 5, .model = "m", .lineage = "l"};
static const http_end done = {.fin = HTTP_FIN_TOOLS, .n_prompt = 3, .n_generated = 2};
static const smoe_logprobs logprobs = {.chosen = {1, -1}, .n_top = 1, .top = {{1, -1}}};
static http_event events[] = {
    {.kind = HTTP_EVENT_BEGIN},
    {.kind = HTTP_EVENT_WAITING, .done = 1, .total = 3},
    {.kind = HTTP_EVENT_REASONING, .text = {"hm", 2}},
    {.kind = HTTP_EVENT_LOGPROBS, .logprobs = &logprobs},
    {.kind = HTTP_EVENT_CONTENT, .text = {"a", 1}},
    {.kind = HTTP_EVENT_TOOL_BEGIN, .text = {"f", 1}},
    {.kind = HTTP_EVENT_TOOL_INPUT, .text = {"{}", 2}},
    {.kind = HTTP_EVENT_TOOL_END},
    {.kind = HTTP_EVENT_END, .end = &done},
};

enum { N_EVENTS = sizeof events / sizeof *events };

/* A reply, streamed or whole; what is written before a failure is thrown away, as a connection
 * does. */
static smoe_status write_reply(const http_format *f, void *state, bool is_stream)
{
    smoe_status status = SMOE_OK;
    smoe_err err;
    buf out;
    http_answer answer;
    buf_init(&out, 1 << 20);
    http_answer_init(&answer);
    for (size_t i = 0; i < N_EVENTS && status == SMOE_OK; i++) {
        status = is_stream ? f->stream(state, &reply, &events[i], &out, &err)
                           : http_answer_add(&answer, &events[i], &err);
    }
    if (status == SMOE_OK && !is_stream) {
        status = f->whole(state, &reply, &answer, &out, &err);
    }
    http_answer_fini(&answer);
    buf_fini(&out);
    return status;
}

/* True once nothing was refused any more. */
static bool life(const http_format *f, const char *body, bool is_stream, uint64_t nth)
{
    http_request request;
    http_error error;
    void *state = NULL;
    smoe_status status = SMOE_NOMEM;
    http_request_init(&request);
    mem_fail_nth(nth);
    bool ok = f->parse(slice_from(body), &request, &state, &error);
    if (!ok) {
        assert_int_equal(error.kind, HTTP_INTERNAL);
    } else {
        status = write_reply(f, state, is_stream);
        assert_true(status == SMOE_OK || status == SMOE_NOMEM);
    }
    mem_fail_nth(0);
    if (f->free_state != NULL) {
        f->free_state(state);
    }
    http_request_fini(&request);
    return status == SMOE_OK;
}

static void test_formats(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < N_CASES; i++) {
        for (int is_stream = 0; is_stream < 2; is_stream++) {
            assert_true(life(cases[i].format, cases[i].body, is_stream, 0));
            uint64_t nth = 1;
            while (!life(cases[i].format, cases[i].body, is_stream, nth)) {
                nth++;
                assert_true(nth < MAX_ALLOCATIONS);
            }
            assert_true(nth > 2);
        }
    }
}

/* A request whose events cannot be kept ends with an error, whenever memory is refused. */
static void test_mailbox(void **unused)
{
    (void)unused;
    bool lost = true;
    for (uint64_t nth = 1; lost; nth++) {
        smoe_err err;
        job *j;
        job_batch batch;
        bool ended = false;
        mem_fail_nth(nth);
        if (job_new(&j, &err) != SMOE_OK) {
            mem_fail_nth(0);
            continue;
        }
        job_batch_init(&batch);
        lost = false;
        size_t n = 0;
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < 40; i++) {
                job_put_text(j, HTTP_EVENT_CONTENT, 0, slice_from("some text"));
                job_put_logprobs(j, &logprobs);
            }
            if (round == 2) {
                job_put_end(j, &done);
            }
            do {
                job_take(j, 0, &batch, &ended);
                n += batch.n;
            } while (batch.n > 0 && batch.events[batch.n - 1].kind < HTTP_EVENT_END);
            lost |= batch.n > 0 && batch.events[batch.n - 1].kind == HTTP_EVENT_ERROR;
        }
        mem_fail_nth(0);
        assert_true(ended);
        assert_true(lost || n == 241);
        job_batch_fini(&batch);
        job_release(j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_mailbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
