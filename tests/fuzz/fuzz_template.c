/* fuzz_template.c: a chat template, rendered over one conversation. */
#include "fuzz.h"

#include <string.h>

#include "smoe/tokenizer.h"

static const char variables[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":"
    "\"Hi \xf0\x9f\x99\x82\"},{\"role\":\"assistant\",\"content\":\"<think>x</think>Hello\"},"
    "{\"role\":\"user\",\"content\":\"Bye\"}],\"add_generation_prompt\":true,\"tools\":[],"
    "\"bos_token\":\"<s>\",\"eos_token\":\"</s>\",\"enable_thinking\":false}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    smoe_err err;
    smoe_template *t = NULL;
    char *text = NULL;
    size_t len;
    if (smoe_template_new((const char *)data, size, &t, &err) != SMOE_OK) {
        return 0;
    }
    if (smoe_template_render(t, variables, strlen(variables), &text, &len, &err) == SMOE_OK) {
        smoe_text_free(text);
    }
    smoe_template_free(t);
    return 0;
}
