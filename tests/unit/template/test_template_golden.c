/* test_template_golden.c: whole templates over whole conversations, against the reference
 * (tests/golden/templates, see tests/golden/README.md). Arguments: that folder, and the folder with
 * its cases unpacked. */
#include "cases.h"

static const char *templates_dir, *cases_dir;

typedef struct family {
    slice source;
    const char *name;
} family;

static void run_case(const json_value *root, slice variables, void *ctx)
{
    const family *f = ctx;
    smoe_err err = {0};
    slice source = f->source, want = {0}, name = {0}, kind = {0};
    char *text = NULL;
    size_t len = 0;
    assert_true(jr_string(jr_get(root, "case"), &name));
    if (!source.data) {
        assert_true(jr_string(jr_get(root, "template"), &source));
    }
    smoe_status status = render_text(source, variables, &text, &len, &err);
    if (jr_string(jr_get(root, "expected"), &want)) {
        bool may_refuse = slice_starts(name, slice_from("rare")) && status == SMOE_UNSUPPORTED;
        if (!may_refuse && (status != SMOE_OK || !slice_eq((slice){text, len}, want))) {
            fail_msg("%s: %s\n  wanted %s\n  found  %s", f->name, name.data, want.data,
                     status ? err.text : text);
        }
    } else {
        if (status == SMOE_OK) {
            fail_msg("%s: %s: rendered %s, where the reference fails", f->name, name.data, text);
        }
        if (jr_string(jr_get(root, "error"), &kind) && slice_is(kind, "raised") &&
            jr_string(jr_get(root, "message"), &want) && strstr(source.data, "raise_exception") &&
            !strstr(err.text, want.data)) {
            fail_msg("%s: %s: wanted \"%s\", found \"%s\"", f->name, name.data, want.data,
                     err.text);
        }
    }
    smoe_text_free(text);
}

static void run_family(const char *name, bool has_template, size_t min_cases)
{
    char path[4096];
    buf source;
    buf_init(&source, CASES_MAX_BYTES);
    if (has_template) {
        snprintf(path, sizeof path, "%s/%s.jinja", templates_dir, name);
        slurp(path, &source);
    }
    family f = {buf_slice(&source), name};
    snprintf(path, sizeof path, "%s/%s.jsonl", cases_dir, name);
    assert_true(for_each_case(path, run_case, &f) >= min_cases);
    buf_fini(&source);
}

static void test_families(void **state)
{
    static const char *const names[] = {"chatml", "generation", "header_ids", "inst", "macros",
                                        "parts",  "qwen3",      "reasoning",  "turns"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        run_family(names[i], true, 50);
    }
}

static void test_snippets(void **state)
{
    (void)state;
    run_family("snippets", false, 200);
}

/* The published tokenizer_config.json holds the template of qwen3.jinja. */
static void test_published(void **state)
{
    char path[4096];
    buf config, source;
    json_value *root = NULL;
    slice published = {0};
    smoe_err err = {0};
    smoe_template *t = NULL;
    (void)state;
    snprintf(path, sizeof path, "%s/tokenizer_config.json", cases_dir);
    slurp(path, &config);
    snprintf(path, sizeof path, "%s/qwen3.jinja", templates_dir);
    slurp(path, &source);
    ASSERT_OK(jr_parse(buf_slice(&config), "tokenizer_config.json", &root, &err), &err);
    assert_true(jr_string(jr_get(root, "chat_template"), &published));
    assert_true(slice_eq(published, buf_slice(&source)));
    ASSERT_OK(smoe_template_new(published.data, published.len, &t, &err), &err);
    assert_true(smoe_template_uses(t, "enable_thinking"));
    smoe_template_free(t);
    jr_free(root);
    buf_fini(&config);
    buf_fini(&source);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_snippets),
        cmocka_unit_test(test_published),
    };
    if (argc < 3) {
        return 2;
    }
    templates_dir = argv[1];
    cases_dir = argv[2];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
