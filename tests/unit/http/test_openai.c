/* A chat completion's JSON into a request, and events into JSON. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "http/format.h"

static const http_format *const f = &openai_chat_format;

#include "format_rig.h"

static void test_messages(void **unused)
{
    (void)unused;
    assert_true(parse(MESSAGES(
        "{\"role\":\"developer\",\"content\":\"a\"},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"b\"},"
        "{\"type\":\"text\",\"text\":\"c\"}]},"
        "{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"r\",\"tool_calls\":"
        "[{\"id\":\"1\",\"type\":\"function\",\"function\":"
        "{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\"}}]},"
        "{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"d\"}")));
    assert_string_equal(
        request.messages.data,
        "[{\"role\":\"system\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"b\\nc\"},"
        "{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":\"r\",\"tool_calls\":"
        "[{\"id\":\"1\",\"type\":\"function\",\"function\":"
        "{\"name\":\"f\",\"arguments\":{\"x\":1}}}]},"
        "{\"role\":\"tool\",\"content\":\"d\",\"tool_call_id\":\"1\"}]");
    assert_true(request.is_chat);
    assert_false(request.stream);
}

static void test_arguments_that_are_no_object(void **unused)
{
    (void)unused;
    assert_true(parse(
        MESSAGES("{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":"
                 "[{\"function\":{\"name\":\"f\",\"arguments\":\"{oops\"}}]}")));
    assert_non_null(strstr(request.messages.data, "\"arguments\":\"{oops\""));
}

static void test_sampling(void **unused)
{
    (void)unused;
    assert_true(parse("{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"temperature\":0,"
                      "\"top_k\":-1,\"seed\":-1,\"max_completion_tokens\":9,\"stop\":[\"a\",\"b\"],"
                      "\"stream\":true,\"model\":\"m\"}"));
    assert_true(request.sampling.has_temperature && request.sampling.temperature == 0);
    assert_false(request.sampling.has_top_p);
    assert_int_equal(request.sampling.top_k, 1024);
    assert_true(request.sampling.seed == UINT64_MAX);
    assert_int_equal(request.max_tokens, 9);
    assert_int_equal(request.n_stops, 2);
    assert_string_equal(request.stops[1].data, "b");
    assert_true(request.stream);
    assert_string_equal(request.model.data, "m");
}

static void test_refusals(void **unused)
{
    (void)unused;
    assert_false(parse("{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"min_p\":1.5}"));
    assert_string_equal(error.param, "min_p");
    assert_int_equal(error.kind, HTTP_BAD_REQUEST);
    assert_false(parse(MESSAGES("{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}")));
    assert_string_equal(error.param, "messages[0].content[0]");
    assert_false(parse("[1]"));
    assert_string_equal(error.param, "");
}

static const http_reply reply = {
    .id = "0123456789abcdef0123456789abcdef", .created = 5, .model = "m", .lineage = "l"};

static void test_stream(void **unused)
{
    (void)unused;
    buf out;
    smoe_err err;
    http_end done = {.fin = HTTP_FIN_LENGTH, .n_prompt = 3, .n_generated = 2, .prefill_s = -1};
    http_event events[] = {
        {.kind = HTTP_EVENT_BEGIN},
        {.kind = HTTP_EVENT_WAITING, .done = 1, .total = 3},
        {.kind = HTTP_EVENT_REASONING, .text = slice_from("hm\n")},
        {.kind = HTTP_EVENT_CONTENT, .text = slice_from("\"é\"")},
        {.kind = HTTP_EVENT_TOOL_BEGIN, .text = slice_from("f"), .index = 1},
        {.kind = HTTP_EVENT_TOOL_INPUT, .text = slice_from("{}"), .index = 1},
        {.kind = HTTP_EVENT_TOOL_END, .index = 1},
        {.kind = HTTP_EVENT_END, .end = &done},
    };
    static const char *const wanted[] = {
        "\"delta\":{\"role\":\"assistant\",\"content\":\"\"}", ": prefill 1/3\n\n",
        "\"delta\":{\"reasoning_content\":\"hm\\n\"}", "\"delta\":{\"content\":\"\\\"é\\\"\"}",
        ("\"id\":\"call_0123456789abcdef012345671\",\"type\":\"function\",\"function\":"
         "{\"name\":\"f\",\"arguments\":\"\"}"), "\"function\":{\"arguments\":\"{}\"}", "",
        "\"finish_reason\":\"length\"",
    };
    buf_init(&out, 1 << 20);
    assert_true(parse("{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"stream\":true,"
                      "\"stream_options\":{\"include_usage\":true}}"));
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        buf_clear(&out);
        assert_int_equal(f->stream(state, &reply, &events[i], &out, &err), SMOE_OK);
        assert_non_null(strstr(out.len > 0 ? out.data : "", wanted[i]));
    }
    assert_non_null(strstr(out.data, "\"choices\":[],\"usage\":{\"prompt_tokens\":3,"));
    assert_true(slice_ends(buf_slice(&out), slice_from("data: [DONE]\n\n")));
    buf_fini(&out);
}

static void test_whole(void **unused)
{
    (void)unused;
    buf out;
    smoe_err err;
    http_answer a;
    http_end done = {.fin = HTTP_FIN_TOOLS, .n_prompt = 3, .n_generated = 2, .prefill_s = -1};
    http_event events[] = {
        {.kind = HTTP_EVENT_TOOL_BEGIN, .text = slice_from("f")},
        {.kind = HTTP_EVENT_TOOL_INPUT, .text = slice_from("{\"a\":")},
        {.kind = HTTP_EVENT_TOOL_INPUT, .text = slice_from("1}")},
        {.kind = HTTP_EVENT_TOOL_END},
        {.kind = HTTP_EVENT_END, .end = &done},
    };
    buf_init(&out, 1 << 20);
    http_answer_init(&a);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        assert_int_equal(http_answer_add(&a, &events[i], &err), SMOE_OK);
    }
    assert_int_equal(f->whole(NULL, &reply, &a, &out, &err), SMOE_OK);
    assert_non_null(strstr(out.data, "\"content\":null"));
    assert_non_null(strstr(out.data, "{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}"));
    assert_non_null(strstr(out.data, "\"finish_reason\":\"tool_calls\""));
    http_answer_fini(&a);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages), cmocka_unit_test(test_arguments_that_are_no_object),
        cmocka_unit_test(test_sampling), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_stream),   cmocka_unit_test(test_whole),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
