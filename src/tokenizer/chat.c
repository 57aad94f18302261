/* chat.c: a conversation as token ids, by the checkpoint's own template and tokenizer.
 *
 * The template sees what transformers gives it: messages; tools and documents (null unless given);
 * add_generation_prompt (true unless given); and the texts of the special tokens that the
 * checkpoint defines. Extra variables may add to these; giving messages or a special token twice is
 * refused. So is a checkpoint without a template: a guessed one would run, and be wrong. */
#include "base/mem.h"
#include "json/json_read.h"
#include "json/json_write.h"
#include "smoe/tokenizer.h"
#include "tokenizer/chat_messages.h"

enum { CHAT_MAX_VARIABLES_BYTES = 256 << 20 };

struct smoe_chat_format {
    smoe_tokenizer *tok;
    smoe_template *template;
    smoe_template *tool_template; /* "tool_use" of a list of templates, or NULL */
    buf specials; /* ,"bos_token":"...","eos_token":"..." as it goes into the variables */
};

static const char config_name[] = "tokenizer_config.json";

/* The template of that name in a list of {"name", "template"}. */
static bool find_named(const json_value *list, const char *wanted, slice *out)
{
    for (size_t i = 0; i < jr_len(list); i++) {
        slice name = {0};
        if (jr_string(jr_get(jr_at(list, i), "name"), &name) && slice_is(name, wanted)) {
            return jr_string(jr_get(jr_at(list, i), "template"), out);
        }
    }
    return false;
}

/* chat_template: a text, or a list of {"name", "template"} of which "default" is taken, and
 * "tool_use" (left empty when absent) when there are tools. */
static smoe_status find_template(const json_value *config, slice *out, slice *tool_use,
                                 smoe_err *err)
{
    const json_value *entry = jr_get(config, "chat_template");
    if (jr_string(entry, out)) {
        return SMOE_OK;
    }
    if (jr_is_null(entry)) {
        return err_set(err, SMOE_FORMAT,
                       "%s has no chat_template, and there is no chat_template.jinja; "
                       "a conversation with this checkpoint needs one",
                       config_name);
    }
    if (jr_kind(entry) != JSON_KIND_ARRAY) {
        return err_set(err, SMOE_FORMAT,
                       "chat_template in %s must be a string or an array, found %s", config_name,
                       jr_kind_name(entry));
    }
    find_named(entry, "tool_use", tool_use);
    if (!find_named(entry, "default", out)) {
        return err_set(err, SMOE_FORMAT,
                       "chat_template in %s lists %zu templates, and none of them is named "
                       "\"default\"",
                       config_name, jr_len(entry));
    }
    return SMOE_OK;
}

/* A special token is a text or an object with its text as content. */
static smoe_status find_specials(const json_value *config, buf *out, smoe_err *err)
{
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};
    json_writer w;
    jw_init(&w, out);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const json_value *entry = jr_get(config, names[i]);
        slice text = {0};
        if (jr_is_null(entry)) {
            continue;
        }
        if (!jr_string(entry, &text) && !jr_string(jr_get(entry, "content"), &text)) {
            return err_set(err, SMOE_FORMAT,
                           "%s in %s must be a string or an object with a content, found "
                           "%s",
                           names[i], config_name, jr_kind_name(entry));
        }
        jw_key(&w, names[i]);
        jw_string(&w, text);
    }
    return jw_finish(&w, err);
}

smoe_status smoe_chat_format_new(const smoe_chat_files *files, smoe_chat_format **out,
                                 smoe_err *err)
{
    smoe_status status;
    json_value *config = NULL;
    slice source = {files->chat_template, files->chat_template_len}, tool_use = {0};
    smoe_chat_format *f = mem_calloc(1, sizeof *f);
    if (!f) {
        smoe_tokenizer_free(files->tokenizer);
        return err_nomem(err, "the chat format", sizeof *f);
    }
    f->tok = files->tokenizer;
    buf_init(&f->specials, CHAT_MAX_VARIABLES_BYTES);
    CHECK(jr_parse((slice){files->tokenizer_config_json, files->tokenizer_config_json_len},
                   config_name, &config, err));
    if (!source.data) {
        CHECK(find_template(config, &source, &tool_use, err));
    }
    CHECK(smoe_template_new(source.data, source.len, &f->template, err));
    if (tool_use.data) {
        CHECK(smoe_template_new(tool_use.data, tool_use.len, &f->tool_template, err));
    }
    CHECK(find_specials(config, &f->specials, err));
    if (!f->tok) {
        CHECK(smoe_tokenizer_new(files->tokenizer_json, files->tokenizer_json_len, &f->tok, err));
    }
    *out = f;
    f = NULL;
out:
    jr_free(config);
    smoe_chat_format_free(f);
    return status;
}

void smoe_chat_format_free(smoe_chat_format *f)
{
    if (f) {
        smoe_tokenizer_free(f->tok);
        smoe_template_free(f->template);
        smoe_template_free(f->tool_template);
        buf_fini(&f->specials);
        mem_free(f);
    }
}

const smoe_tokenizer *smoe_chat_format_tokenizer(const smoe_chat_format *f)
{
    return f->tok;
}

const smoe_template *smoe_chat_format_template(const smoe_chat_format *f)
{
    return f->template;
}

/* Checks that text is a JSON value of the kind, so that it can be put among others as it is. */
static smoe_status check_json(slice text, const char *what, enum json_kind kind, json_value **root,
                              smoe_err *err)
{
    TRY(jr_parse(text, what, root, err));
    if (jr_kind(*root) != kind) {
        return err_set(err, SMOE_FORMAT, "%s must be a JSON %s, found %s", what,
                       kind == JSON_KIND_ARRAY ? "array" : "object", jr_kind_name(*root));
    }
    return SMOE_OK;
}

static void default_variable(json_writer *w, const json_value *extra, const char *name,
                             bool is_true)
{
    if (!extra || !jr_get(extra, name)) {
        jw_key(w, name);
        if (is_true) {
            jw_bool(w, true);
        } else {
            jw_null(w);
        }
    }
}

/* The members of one JSON object after those of another that is still open. */
static smoe_status splice(buf *out, slice members, smoe_err *err)
{
    TRY(members.len ? buf_putc(out, ',', err) : SMOE_OK);
    return buf_append_slice(out, members, err);
}

/* extra_text minus its braces; checked before. */
static slice inside(slice object)
{
    size_t open = 0, close = object.len;
    while (object.data[open] != '{') {
        open++;
    }
    while (object.data[close - 1] != '}') {
        close--;
    }
    return (slice){object.data + open + 1, close - open - 2};
}

static smoe_status build_variables(const smoe_chat_format *f, const json_value *messages,
                                   slice extra_text, const json_value *extra, buf *out,
                                   smoe_err *err)
{
    json_writer w;
    jw_init(&w, out);
    jw_begin_object(&w);
    default_variable(&w, extra, "add_generation_prompt", true);
    default_variable(&w, extra, "tools", false);
    default_variable(&w, extra, "documents", false);
    jw_key(&w, "messages");
    TRY(jw_finish(&w, err));
    TRY(chat_messages_write(messages, out, err));
    TRY(splice(out, buf_slice(&f->specials), err));
    TRY(splice(out, extra && jr_len(extra) ? inside(extra_text) : (slice){0}, err));
    return buf_putc(out, '}', err);
}

smoe_status smoe_chat_format_encode(const smoe_chat_format *f, const char *messages_json,
                                    size_t len, const char *extra_json, smoe_ids *out,
                                    smoe_err *err)
{
    smoe_status status;
    json_value *messages = NULL, *extra = NULL;
    slice extra_text = slice_from(extra_json ? extra_json : "{}");
    char *text = NULL;
    size_t text_len = 0;
    buf variables;
    buf_init(&variables, CHAT_MAX_VARIABLES_BYTES);
    CHECK(check_json((slice){messages_json, len}, "the messages", JSON_KIND_ARRAY, &messages, err));
    CHECK(check_json(extra_text, "the extra template variables", JSON_KIND_OBJECT, &extra, err));
    CHECK(build_variables(f, messages, extra_text, extra, &variables, err));
    const smoe_template *template = f->tool_template && !jr_is_null(jr_get(extra, "tools"))
                                        ? f->tool_template
                                        : f->template;
    CHECK(smoe_template_render(template, variables.data, variables.len, &text, &text_len, err));
    CHECK(smoe_tokenizer_encode(f->tok, text, text_len, out, err));
out:
    buf_fini(&variables);
    smoe_text_free(text);
    jr_free(messages);
    jr_free(extra);
    return status;
}
