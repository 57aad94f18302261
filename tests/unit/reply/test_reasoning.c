/* test_reasoning.c: reasoning and answer come out the same however the reply is cut into pieces. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "base/buf.h"
#include "reply/reasoning.h"

typedef struct heard {
    buf reasoning, answer;
} heard;

static void hear(void *ctx, bool is_reasoning, slice text)
{
    heard *h = ctx;
    assert_true(text.len > 0);
    buf_append_slice(is_reasoning ? &h->reasoning : &h->answer, text, NULL);
}

static void check_pieces(const char *reply, size_t first, size_t second, bool has_tags,
                         bool starts_inside, const char *thought, const char *answer)
{
    heard h;
    reasoning r;
    size_t n = strlen(reply);
    buf_init(&h.reasoning, 1000);
    buf_init(&h.answer, 1000);
    reasoning_init(&r, has_tags, starts_inside, hear, &h);
    reasoning_push(&r, slice_of(reply, first));
    reasoning_push(&r, slice_of(reply + first, second - first));
    for (size_t i = second; i < n; i++) { /* the rest one by one */
        reasoning_push(&r, slice_of(reply + i, 1));
    }
    reasoning_finish(&r);
    assert_int_equal(h.reasoning.len, strlen(thought));
    assert_int_equal(h.answer.len, strlen(answer));
    assert_memory_equal(h.reasoning.len ? h.reasoning.data : "", thought, h.reasoning.len);
    assert_memory_equal(h.answer.len ? h.answer.data : "", answer, h.answer.len);
    buf_fini(&h.reasoning);
    buf_fini(&h.answer);
}

static void check(const char *reply, bool has_tags, bool starts_inside, const char *thought,
                  const char *answer)
{
    size_t n = strlen(reply);
    for (size_t i = 0; i <= n; i++) {
        for (size_t j = i; j <= n; j++) {
            check_pieces(reply, i, j, has_tags, starts_inside, thought, answer);
        }
    }
}

static void test_every_cut(void **state)
{
    (void)state;
    check("<think>\nfirst\n\nthen\n</think>\n\nThe answer.\n", true, false, "first\n\nthen",
          "The answer.\n");
    check("\n <think>a</think>b", true, false, "a", "b");
    check("first\n</think>\n\nAnswer", true, true, "first", "Answer");
    check("<think>\n\n</think>\n\nHi", true, false, "", "Hi");
    check("<think>a</thin</think>b</think>", true, false, "a</thin", "b</think>");
    check("<think>a<</think>b", true, false, "a<", "b");
    check("<think>never closed</thi", true, false, "never closed</thi", "");
    check("plain <think>x</think>", true, false, "", "plain <think>x</think>");
    check("<thing>", true, false, "", "<thing>");
    check("<thi", true, false, "", "<thi");
    check("  \n x", true, false, "", "  \n x");
    check("            \n\n\n   x", true, false, "", "            \n\n\n   x");
    check("", true, false, "", "");
    check("", true, true, "", "");
    check("<think>a</think>b", false, false, "", "<think>a</think>b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
