/* test_template.c: the template language, case by case (cases.jsonl, whose truth is Jinja's own:
 * see tools/golden/check_templates.py), and what a hostile template cannot do. */
#include "cases.h"

static const char *cases_path;

static void run_case(const json_value *root, slice variables, void *ctx)
{
    smoe_err err = {0};
    slice source = {0}, want = {0};
    char *text = NULL;
    size_t len = 0;
    (void)ctx;
    assert_true(jr_string(jr_get(root, "template"), &source));
    smoe_status status = render_text(source, variables, &text, &len, &err);
    if (jr_string(jr_get(root, "expected"), &want)) {
        if (status != SMOE_OK || !slice_eq((slice){text, len}, want)) {
            fail_msg("%s\n  wanted %s\n  found  %s", source.data, want.data,
                     status ? err.text : text);
        }
    } else if (jr_string(jr_get(root, "refused"), &want)) {
        if (status != SMOE_UNSUPPORTED || !slice_is(want, err.text)) {
            fail_msg("%s\n  wanted %s\n  found  %s", source.data, want.data,
                     status ? err.text : text);
        }
    } else {
        assert_true(jr_string(jr_get(root, "error"), &want));
        if (status == SMOE_OK || strncmp(err.text, "chat template line ", 19) != 0 ||
            !strstr(err.text, want.data)) {
            fail_msg("%s\n  wanted %s\n  found  %s", source.data, want.data,
                     status ? err.text : text);
        }
    }
    smoe_text_free(text);
}

static void test_cases(void **state)
{
    (void)state;
    assert_true(for_each_case(cases_path, run_case, NULL) > 250);
}

static void expect_failure(const char *source, const char *part)
{
    char *text = NULL;
    size_t len = 0;
    smoe_err err = {0};
    smoe_status status = render_text(slice_from(source), slice_from("{}"), &text, &len, &err);
    if (status == SMOE_OK || !strstr(err.text, part)) {
        fail_msg("%.80s: wanted \"%s\", found \"%s\"", source, part, status ? err.text : "a text");
    }
}

static void test_hostile(void **state)
{
    (void)state;
    expect_failure("{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x "
                   "%}{% endfor %}",
                   "64 MiB");
    expect_failure("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
                   "MiB");
    expect_failure(
        "{% set l = range(99999) | list %}{% for i in l %}{% for j in l %}{% endfor %}{% endfor %}",
        "steps");
    expect_failure("{% for i in range(99999) %}{{ 'x' * 99999 }}{% endfor %}", "steps");
    expect_failure("{{ [1] * 9999999999 }}", "memory");
    expect_failure("{{ [1] * 9223372036854775807 }}", "memory");
    expect_failure("{{ ' ' * 9223372036854775807 }}", "64 MiB");
    expect_failure("{% set n = namespace(l=[]) %}{% for i in range(9999) %}{% set n.l = [n.l, n.l] "
                   "%}{% endfor %}{{ n.l }}",
                   "100 levels");
    expect_failure("{% set n = namespace(l=[1]) %}{% for i in range(90) %}{% set n.l = [n.l, n.l] "
                   "%}{% endfor %}"
                   "{{ n.l | tojson }}",
                   "steps");
    expect_failure("{% set n = namespace(l=[1]) %}{% for i in range(90) %}{% set n.l = [n.l, n.l] "
                   "%}{% endfor %}"
                   "{% set m = namespace(l=[1]) %}{% for i in range(90) %}{% set m.l = [m.l, m.l] "
                   "%}{% endfor %}"
                   "{{ n.l == m.l }}",
                   "steps");
    expect_failure("{% set n = namespace() %}{% set n.n = n %}{{ n }}", "100 levels");
    expect_failure("{% macro a(x) %}{{ b(x) }}{% endmacro %}{% macro b(x) %}{{ a([x]) }}{% "
                   "endmacro %}{{ a(1) }}",
                   "levels deep");
    expect_failure(
        "{% for i in range(9999) %}{{ 'x'.replace('x', 'y' * 9999) * 9999 }}{% endfor %}", "MiB");
    expect_failure("{{ ('a' * 9999999).rsplit('b' * 999999) }}", "steps");
    expect_failure("{{ range(0, 9223372036854775807) }}", "range");
    expect_failure("{{ range(-9223372036854775807, 9223372036854775807, 1) }}", "range");
}

/* open repeated n times, then rest. */
static void expect_too_deep(const char *open, const char *rest, const char *part)
{
    enum { N = 5000 };
    buf b;
    smoe_err err = {0};
    char *text = NULL;
    size_t len = 0;
    buf_init(&b, 1 << 20);
    ASSERT_OK(buf_puts(&b, "{{ ", &err), &err);
    for (int i = 0; i < N; i++) {
        ASSERT_OK(buf_puts(&b, open, &err), &err);
    }
    ASSERT_OK(buf_puts(&b, rest, &err), &err);
    smoe_status status = render_text(buf_slice(&b), slice_from("{}"), &text, &len, &err);
    if (status == SMOE_OK || !strstr(err.text, part)) {
        fail_msg("%s...: %s", open, status ? err.text : "a text");
    }
    buf_fini(&b);
}

static void test_deep(void **state)
{
    (void)state;
    expect_too_deep("(", "1", "brackets");
    expect_too_deep("-", "1 }}", "levels deep");
    expect_too_deep("not ", "1 }}", "levels deep");
    expect_too_deep("1 if 1 else ", "1 }}", "levels deep");
    expect_too_deep("1 }}{% if 1 %}{{ ", "1 }}", "levels deep");
    expect_too_deep("a.", "b }}", "levels deep");
    expect_too_deep("[0]", " }}", "levels deep");
    expect_too_deep("[{'a': ", "1 }}", "brackets");
}

static void test_long_chains(void **state)
{
    buf b;
    smoe_err err = {0};
    char *text = NULL;
    size_t len = 0;
    (void)state;
    buf_init(&b, 1 << 20);
    ASSERT_OK(buf_puts(&b, "{{ 1", &err), &err);
    for (int i = 0; i < 3000; i++) {
        ASSERT_OK(buf_puts(&b, " + 1", &err), &err);
    }
    ASSERT_OK(buf_puts(&b, " }}", &err), &err);
    ASSERT_OK(render_text(buf_slice(&b), slice_from("{}"), &text, &len, &err), &err);
    assert_string_equal(text, "3001");
    smoe_text_free(text);
    buf_fini(&b);
}

static void test_variables(void **state)
{
    smoe_template *t = NULL;
    smoe_err err = {0};
    char *text = NULL;
    size_t len = 0;
    (void)state;
    const char *source = "{% if a %}{{ b }}{% endif %}{% set c = 1 %}";
    ASSERT_OK(smoe_template_new(source, strlen(source), &t, &err), &err);
    assert_true(smoe_template_uses(t, "a"));
    assert_true(smoe_template_uses(t, "b"));
    assert_false(smoe_template_uses(t, "c"));
    assert_false(smoe_template_uses(t, "d"));
    ASSERT_FAILS(smoe_template_render(t, "[]", 2, &text, &len, &err), SMOE_FORMAT, &err,
                 "must be a JSON object");
    ASSERT_FAILS(smoe_template_render(t, "{", 1, &text, &len, &err), SMOE_FORMAT, &err,
                 "not valid JSON");
    assert_int_equal(smoe_template_render(t, "{", 1, &text, &len, NULL), SMOE_FORMAT);
    ASSERT_OK(smoe_template_render(t, "{\"a\":1,\"b\":\"x\"}", 15, &text, &len, &err), &err);
    assert_string_equal(text, "x");
    smoe_text_free(text);
    smoe_template_free(t);
    ASSERT_OK(smoe_template_new("", 0, &t, &err), &err);
    ASSERT_OK(smoe_template_render(t, "{}", 2, &text, &len, &err), &err);
    assert_string_equal(text, "");
    smoe_text_free(text);
    smoe_template_free(t);
    ASSERT_FAILS(smoe_template_new("\xff", 1, &t, &err), SMOE_FORMAT, &err, "UTF-8");
}

/* Every prefix of a template loads or is refused; nothing else happens. */
static void test_prefixes(void **state)
{
    static const char source[] = "{%- macro m(a, b=[1, {'x': 2.5}]) -%}{{ a | default('q\\n') ~ "
                                 "b[0:2][::-1] }}{%- endmacro -%}\n"
                                 "{# c #}{% for k, v in {'a': 1}.items() if v is not none %}{{ "
                                 "loop.index }}{% if not v in [1] %}"
                                 "{% break %}{% else %}{{ m(k, b=v) if v > 0 else '' }}{% endif "
                                 "%}{% else %}{% raw %}{{{% endraw %}"
                                 "{% endfor %}{% set ns = namespace(z=1) %}{% set ns.z = -2 ** 2 "
                                 "// 3 %}{% filter upper %}x{% endfilter %}";
    (void)state;
    for (size_t n = 0; n < sizeof source; n++) {
        char *copy = mem_strndup(source, n), *text = NULL;
        size_t len = 0;
        smoe_err err = {0};
        if (render_text((slice){copy, n}, slice_from("{}"), &text, &len, &err) != SMOE_OK) {
            assert_true(err.text[0] != '\0');
        }
        smoe_text_free(text);
        mem_free(copy);
    }
}

/* Every allocation refused once: an error each time, no leak, no crash. */
static void test_no_memory(void **state)
{
    static const char source[] =
        "{% macro m(a) %}{{ a }}{{ varargs }}{% endmacro %}{% for x in l | map('upper') | list if "
        "x %}"
        "{{ m(x, 1) | trim }}{{ loop.index }}{{ {'a': [x]} | tojson }}{{ x.split('b') | sort | "
        "join(',') }}"
        "{% endfor %}{% set y %}{{ x }}{% endset %}{{ '%s' % y }}{{ l[::-1] }}";
    smoe_status status = SMOE_NOMEM;
    (void)state;
    for (uint64_t nth = 1; status != SMOE_OK; nth++) {
        char *text = NULL;
        size_t len = 0;
        smoe_err err = {0};
        mem_fail_nth(nth);
        status = render_text(slice_from(source), slice_from("{\"l\":[\"ab\",\"c\"]}"), &text, &len,
                             &err);
        mem_fail_nth(0);
        if (status != SMOE_OK) {
            assert_int_equal(status, SMOE_NOMEM);
        }
        smoe_text_free(text);
        assert_true(nth < 10000);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),     cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_deep),      cmocka_unit_test(test_long_chains),
        cmocka_unit_test(test_variables), cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_no_memory),
    };
    if (argc < 2) {
        return 2;
    }
    cases_path = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
