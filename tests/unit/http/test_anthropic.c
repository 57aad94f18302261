/* Anthropic's JSON into a request, and events into JSON. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "http/format.h"

static const http_format *const f = &anthropic_format;

#include "format_rig.h"
#define USER "{\"role\":\"user\",\"content\":\"x\"}"
#define ASK(fields) "{\"messages\":[" USER "]," fields "}"

static void check_messages(const char *body, const char *messages)
{
    assert_true(parse(body));
    assert_string_equal(request.messages.data, messages);
}

static void test_messages(void **unused)
{
    (void)unused;
    check_messages(MESSAGES(USER), "[{\"role\":\"user\",\"content\":\"x\"}]");
    check_messages(
        MESSAGES(
            USER ",{\"role\":\"assistant\",\"content\":["
            "{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s\"},"
            "{\"type\":\"redacted_thinking\",\"data\":\"?\"},"
            "{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"},"
            "{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"f\",\"input\":{\"k\":[1]}},"
            "{\"type\":\"tool_use\",\"id\":\"2\",\"name\":\"g\",\"input\":{}}]},"
            "{\"role\":\"user\",\"content\":["
            "{\"type\":\"tool_result\",\"tool_use_id\":\"1\",\"content\":\"r\"},"
            "{\"type\":\"tool_result\",\"tool_use_id\":\"2\",\"is_error\":true,\"content\":["
            "{\"type\":\"text\",\"text\":\"s\"},{\"type\":\"text\",\"text\":\"t\"}]},"
            "{\"type\":\"tool_result\",\"tool_use_id\":\"3\"},"
            "{\"type\":\"text\",\"text\":\"go\",\"cache_control\":{\"type\":\"ephemeral\"}},"
            "{\"type\":\"text\",\"text\":\"on\"}]}"),
        "[{\"role\":\"user\",\"content\":\"x\"},"
        "{\"role\":\"assistant\",\"content\":\"a\\nb\",\"reasoning_content\":\"hm\","
        "\"tool_calls\":[{\"id\":\"1\",\"type\":\"function\",\"function\":"
        "{\"name\":\"f\",\"arguments\":{\"k\":[1]}}},{\"id\":\"2\",\"type\":\"function\","
        "\"function\":{\"name\":\"g\",\"arguments\":{}}}]},"
        "{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"r\"},"
        "{\"role\":\"tool\",\"tool_call_id\":\"2\",\"content\":\"s\\nt\"},"
        "{\"role\":\"tool\",\"tool_call_id\":\"3\",\"content\":\"\"},"
        "{\"role\":\"user\",\"content\":\"go\\non\"}]");
}

/* The header that differs in each request is not seen by the model, the rest is. */
static void test_system(void **unused)
{
    (void)unused;
    static const char *const same[] = {
        ASK("\"system\":\"a\\nb\""),
        ASK("\"system\":\"x-anthropic-billing-header: cc=1;\\na\\nb\""),
        ASK("\"system\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]"),
        ASK("\"system\":[{\"type\":\"text\",\"text\":\"x-anthropic-billing-header: cc=7;\"},"
            "{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]"),
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        check_messages(same[i], "[{\"role\":\"system\",\"content\":\"a\\nb\"},"
                                "{\"role\":\"user\",\"content\":\"x\"}]");
    }
    check_messages(ASK("\"system\":\"x-anthropic-billing-header: cc=1;\""),
                   "[{\"role\":\"user\",\"content\":\"x\"}]");
    check_messages(MESSAGES(USER ",{\"role\":\"system\",\"content\":\"later\"}"),
                   "[{\"role\":\"user\",\"content\":\"x\"},"
                   "{\"role\":\"system\",\"content\":\"later\"}]");
    check_messages(ASK("\"system\":[]"), "[{\"role\":\"user\",\"content\":\"x\"}]");
    check_messages(ASK("\"system\":\"a x-anthropic-billing-header: b\""),
                   "[{\"role\":\"system\",\"content\":\"a x-anthropic-billing-header: b\"},"
                   "{\"role\":\"user\",\"content\":\"x\"}]");
}

static void test_fields(void **unused)
{
    (void)unused;
    assert_true(parse(ASK("\"model\":\"m\",\"max_tokens\":9,\"temperature\":0.5,\"top_p\":0.9,"
                          "\"top_k\":7,\"stop_sequences\":[\"a\",\"b\"],\"stream\":true,"
                          "\"metadata\":{\"user_id\":\"u\"},\"service_tier\":\"auto\","
                          "\"output_config\":{\"effort\":\"low\"},"
                          "\"context_management\":{\"e\":1}")));
    assert_string_equal(request.model.data, "m");
    assert_int_equal(request.max_tokens, 9);
    assert_true(request.sampling.temperature == 0.5 && request.sampling.top_p == 0.9);
    assert_int_equal(request.sampling.top_k, 7);
    assert_true(request.sampling.has_rep_penalty && request.sampling.rep_penalty == 1);
    assert_int_equal(request.n_stops, 2);
    assert_string_equal(request.stops[1].data, "b");
    assert_true(request.stream && request.is_chat && !request.has_tools);
    assert_string_equal(request.variables.data, "{\"enable_thinking\":false}");
}

#define TOOL "{\"name\":\"f\",\"description\":\"d\",\"input_schema\":{\"type\":\"object\"}}"

static void test_tools_and_thinking(void **unused)
{
    (void)unused;
    assert_true(parse(ASK("\"tools\":[" TOOL "],\"thinking\":{\"type\":\"enabled\","
                          "\"budget_tokens\":1024},\"tool_choice\":{\"type\":\"auto\","
                          "\"disable_parallel_tool_use\":true}")));
    assert_string_equal(request.variables.data,
                        "{\"enable_thinking\":true,\"tools\":[{\"type\":\"function\",\"function\":"
                        "{\"name\":\"f\",\"description\":\"d\","
                        "\"parameters\":{\"type\":\"object\"}}}]}");
    assert_true(request.has_tools && request.one_tool_call);
    assert_true(parse(ASK("\"tools\":[" TOOL "],\"tool_choice\":{\"type\":\"none\"}")));
    assert_false(request.has_tools);
    assert_string_equal(request.variables.data, "{\"enable_thinking\":false}");
    assert_true(parse(ASK("\"thinking\":{\"type\":\"adaptive\"}")));
    assert_string_equal(request.variables.data, "{\"enable_thinking\":true}");
}

static void test_refusals(void **unused)
{
    (void)unused;
    static const struct {
        const char *body, *param;
    } cases[] = {
        {"[]", ""},
        {"{}", "messages"},
        {MESSAGES(""), "messages"},
        {MESSAGES(USER ",{\"role\":\"assistant\",\"content\":\"and\"}"), "messages"},
        {MESSAGES("7"), "messages[0].role"},
        {MESSAGES("{\"role\":\"tool\",\"content\":\"x\"}"), "messages[0].role"},
        {MESSAGES("{\"role\":\"system\",\"content\":7}"), "messages[0].content"},
        {MESSAGES("{\"role\":\"user\"}"), "messages[0].content"},
        {MESSAGES("{\"role\":\"user\",\"content\":[]}"), "messages[0].content"},
        {MESSAGES("{\"role\":\"user\",\"content\":[7]}"), "messages[0].content[0]"},
        {MESSAGES("{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]}"),
         "messages[0].content[0]"},
        {MESSAGES("{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}"),
         "messages[0].content[0]"},
        {MESSAGES("{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\"}]}"),
         "messages[0].content[0]"},
        {MESSAGES("{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
                  "\"1\",\"content\":[{\"type\":\"image\"}]}]}"),
         "messages[0].content[0].content[0]"},
        {MESSAGES("{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"1\","
                  "\"name\":\"f\",\"input\":\"{}\"}]}," USER), "messages[0].content[0]"},
        {MESSAGES("{\"role\":\"assistant\",\"content\":[{\"type\":\"server_tool_use\"}]}," USER),
         "messages[0].content[0]"},
        {ASK("\"system\":7"), "system"},
        {ASK("\"system\":[{\"type\":\"image\"}]"), "system[0]"},
        {ASK("\"max_tokens\":0"), "max_tokens"},
        {ASK("\"temperature\":-1"), "temperature"},
        {ASK("\"stop_sequences\":\"a\""), "stop_sequences"},
        {ASK("\"stop_sequences\":[\"\"]"), "stop_sequences"},
        {ASK("\"tools\":{}"), "tools"},
        {ASK("\"tools\":[{\"name\":\"f\"}]"), "tools[0]"},
        {ASK("\"tools\":[" TOOL ",{\"type\":\"web_search_20250305\",\"name\":\"w\"}]"),
         "tools[1]"},
        {ASK("\"tool_choice\":{\"type\":\"any\"}"), "tool_choice"},
        {ASK("\"tool_choice\":\"auto\""), "tool_choice"},
        {ASK("\"thinking\":true"), "thinking"},
        {ASK("\"mcp_servers\":[{}]"), "mcp_servers"},
        {ASK("\"output_config\":{\"format\":{\"type\":\"json_schema\"}}"),
         "output_config.format"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (parse(cases[i].body)) {
            fail_msg("%s was accepted", cases[i].body);
        }
        assert_string_equal(error.param, cases[i].param);
        assert_int_equal(error.kind, HTTP_BAD_REQUEST);
    }
}

/* Every allocation refused in turn: an error of the server, never a request that lacks a part. */
static void test_no_memory(void **unused)
{
    (void)unused;
    static const char body[] =
        "{\"model\":\"m\",\"system\":\"s\",\"stop_sequences\":[\"a\"],\"tools\":[" TOOL "],"
        "\"messages\":[" USER ",{\"role\":\"assistant\",\"content\":["
        "{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"thinking\",\"thinking\":\"b\"},"
        "{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"f\",\"input\":{}}]},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"1\","
        "\"content\":\"r\"},{\"type\":\"text\",\"text\":\"c\"}]}]}";
    char want[4096];
    assert_true(parse(body));
    snprintf(want, sizeof want, "%s %s", request.messages.data, request.variables.data);
    uint64_t n_refused = 0;
    for (bool ok = false; !ok; n_refused++) {
        mem_fail_nth(n_refused + 1);
        ok = parse(body);
        mem_fail_nth(0);
        assert_true(ok || error.kind == HTTP_INTERNAL);
    }
    assert_true(n_refused > 5);
    assert_memory_equal(request.messages.data, want, request.messages.len);
    assert_string_equal(request.variables.data, want + request.messages.len + 1);
}

static const http_reply reply = {
    .id = "0123456789abcdef0123456789abcdef", .created = 5, .model = "m", .lineage = "l",
    .n_prompt = 9};

static void check_stream(const http_event *events, size_t n, const char *wanted)
{
    buf out;
    smoe_err err;
    buf_init(&out, 1 << 16);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(f->stream(state, &reply, &events[i], &out, &err), SMOE_OK);
    }
    assert_string_equal(out.data, wanted);
    buf_fini(&out);
}

#define EVENT(name, rest) "event: " name "\ndata: {\"type\":\"" name "\"" rest "}\n\n"
#define DELTA(index, type, rest) \
    EVENT("content_block_delta", ",\"index\":" index ",\"delta\":{\"type\":\"" type "\"," rest "}")
#define CLOSE(index) EVENT("content_block_stop", ",\"index\":" index)
#define USAGE_THINKING(input, cached, output, thinking)                                   \
    "\"usage\":{\"input_tokens\":" input ",\"cache_creation_input_tokens\":0,"            \
    "\"cache_read_input_tokens\":" cached ",\"output_tokens\":" output ","                \
    "\"output_tokens_details\":{\"thinking_tokens\":" thinking "}}"
#define USAGE(input, cached, output) USAGE_THINKING(input, cached, output, "0")

static void test_stream(void **unused)
{
    (void)unused;
    http_end done = {.fin = HTTP_FIN_TOOLS, .n_prompt = 9, .n_cached = 4, .n_generated = 7,
                     .n_reasoning = 3};
    const http_event events[] = {
        {.kind = HTTP_EVENT_BEGIN},
        {.kind = HTTP_EVENT_WAITING},
        {.kind = HTTP_EVENT_WAITING, .done = 1, .total = 3},
        {.kind = HTTP_EVENT_REASONING, .text = slice_from("hm")},
        {.kind = HTTP_EVENT_REASONING, .text = slice_from("\n")},
        {.kind = HTTP_EVENT_CONTENT, .text = slice_from("\"é\"")},
        {.kind = HTTP_EVENT_TOOL_BEGIN, .text = slice_from("f"), .index = 0},
        {.kind = HTTP_EVENT_TOOL_INPUT, .text = slice_from("{\"a\": 1}"), .index = 0},
        {.kind = HTTP_EVENT_TOOL_END, .index = 0},
        {.kind = HTTP_EVENT_END, .end = &done},
    };
    assert_true(parse(MESSAGES(USER)));
    check_stream(
        events, sizeof events / sizeof *events,
        EVENT("message_start",
              ",\"message\":{\"id\":\"msg_0123456789abcdef0123456789abcdef\",\"type\":\"message\","
              "\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,"
              "\"stop_sequence\":null," USAGE("9", "0", "0") "}")
        EVENT("ping", "") EVENT("ping", ",\"prompt_progress\":{\"total\":3,\"processed\":1}")
        EVENT("content_block_start", ",\"index\":0,\"content_block\":{\"type\":\"thinking\","
                                     "\"thinking\":\"\",\"signature\":\"\"}")
        EVENT("ping", "")
        DELTA("0", "thinking_delta", "\"thinking\":\"hm\"")
        DELTA("0", "thinking_delta", "\"thinking\":\"\\n\"")
        DELTA("0", "signature_delta", "\"signature\":\"unsigned\"") CLOSE("0")
        EVENT("content_block_start",
              ",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}")
        DELTA("1", "text_delta", "\"text\":\"\\\"é\\\"\"") CLOSE("1")
        EVENT("content_block_start",
              ",\"index\":2,\"content_block\":{\"type\":\"tool_use\","
              "\"id\":\"toolu_0123456789abcdef012345670\",\"name\":\"f\",\"input\":{}}")
        DELTA("2", "input_json_delta", "\"partial_json\":\"{\\\"a\\\": 1}\"") CLOSE("2")
        EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"tool_use\",\"stop_sequence\":null},"
                               USAGE_THINKING("5", "4", "7", "3"))
        EVENT("message_stop", ""));
}

static void test_stream_that_stops_or_fails(void **unused)
{
    (void)unused;
    http_end done = {.fin = HTTP_FIN_STOP_STRING, .i_stop = 1, .n_prompt = 9, .n_generated = 1};
    const http_event ended = {.kind = HTTP_EVENT_END, .end = &done};
    assert_true(parse(ASK("\"stop_sequences\":[\"a\",\"b\"]")));
    check_stream(&ended, 1,
                 EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"stop_sequence\","
                                        "\"stop_sequence\":\"b\"}," USAGE("9", "0", "1"))
                 EVENT("message_stop", ""));
    http_error why;
    http_refuse(&why, HTTP_UNAVAILABLE, NULL, "the engine died");
    const http_event failed = {.kind = HTTP_EVENT_ERROR, .error = &why};
    check_stream(&failed, 1, EVENT("error", ",\"error\":{\"type\":\"overloaded_error\","
                                            "\"message\":\"the engine died\"}"));
}

static void test_whole(void **unused)
{
    (void)unused;
    buf out;
    smoe_err err;
    http_answer a;
    http_end done = {.fin = HTTP_FIN_LENGTH, .n_prompt = 9, .n_cached = 4, .n_generated = 7};
    const http_event full = {.kind = HTTP_EVENT_END, .end = &done};
    const http_event events[] = {
        {.kind = HTTP_EVENT_REASONING, .text = slice_from("hm")},
        {.kind = HTTP_EVENT_CONTENT, .text = slice_from("t")},
        {.kind = HTTP_EVENT_TOOL_BEGIN, .text = slice_from("f")},
        {.kind = HTTP_EVENT_TOOL_INPUT, .text = slice_from("{\"a\": [1]}")},
        {.kind = HTTP_EVENT_TOOL_END},
        {.kind = HTTP_EVENT_END, .end = &done},
    };
    assert_true(parse(ASK("\"max_tokens\":8")));
    check_stream(&full, 1,
                 EVENT("message_delta",
                       ",\"delta\":{\"stop_reason\":\"model_context_window_exceeded\","
                       "\"stop_sequence\":null}," USAGE("5", "4", "7"))
                 EVENT("message_stop", ""));
    assert_true(parse(ASK("\"max_tokens\":7")));
    buf_init(&out, 1 << 16);
    http_answer_init(&a);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        assert_int_equal(http_answer_add(&a, &events[i], &err), SMOE_OK);
    }
    assert_int_equal(f->whole(state, &reply, &a, &out, &err), SMOE_OK);
    assert_string_equal(
        out.data,
        "{\"id\":\"msg_0123456789abcdef0123456789abcdef\",\"type\":\"message\","
        "\"role\":\"assistant\",\"model\":\"m\",\"content\":["
        "{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"unsigned\"},"
        "{\"type\":\"text\",\"text\":\"t\"},"
        "{\"type\":\"tool_use\",\"id\":\"toolu_0123456789abcdef012345670\",\"name\":\"f\","
        "\"input\":{\"a\":[1]}}],"
        "\"stop_reason\":\"max_tokens\",\"stop_sequence\":null," USAGE("5", "4", "7") "}");
    http_answer_fini(&a);
    buf_fini(&out);
}

static void test_errors(void **unused)
{
    (void)unused;
    buf out;
    smoe_err err;
    http_error why;
    buf_init(&out, 1 << 16);
    http_refuse(&why, HTTP_CONTEXT_LENGTH, "messages", "long");
    why.n_prompt = 70;
    why.n_ctx = 60;
    assert_int_equal(f->error(&why, &out, &err), SMOE_OK);
    assert_string_equal(out.data,
                        "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\","
                        "\"message\":\"prompt is too long: 70 tokens > 60 maximum\"}}");
    for (int kind = HTTP_BAD_REQUEST; kind <= HTTP_TIMED_OUT; kind++) {
        buf_clear(&out);
        http_refuse(&why, (enum http_error_kind)kind, NULL, "why");
        assert_int_equal(f->error(&why, &out, &err), SMOE_OK);
        assert_null(strstr(out.data, "null"));
    }
    buf_fini(&out);
}

static void test_count(void **unused)
{
    (void)unused;
    buf out;
    smoe_err err;
    buf_init(&out, 100);
    assert_int_equal(anthropic_count_format.count(NULL, &reply, &out, &err), SMOE_OK);
    assert_string_equal(out.data, "{\"input_tokens\":9}");
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_system),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_tools_and_thinking),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_stream_that_stops_or_fails),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_count),
    };
    return cmocka_run_group_tests_name("http_anthropic", tests, NULL, end);
}
