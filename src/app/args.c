/* args.c: see args.h. */
#include "app/args.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

smoe_status args_parse_ids(const char *text, const char *flag, smoe_ids *ids, smoe_err *err)
{
    const char *p = text;
    for (;;) {
        char *end;
        long long v = strtoll(p, &end, 10);
        if (!isdigit((unsigned char)*p) || v > INT32_MAX || (*end && *end != ',')) {
            return err_set(err, SMOE_USAGE, "--%s takes token ids such as 1,2,3; \"%.40s\" is none",
                           flag, p);
        }
        TRY(smoe_ids_push(ids, (int32_t)v, err));
        if (!*end) {
            return SMOE_OK;
        }
        p = end + 1;
    }
}

smoe_status args_parse_weight_type(const char *text, const char *flag, dtype *type, smoe_err *err)
{
    const dtype_info *t;
    for (size_t i = 0; text && (t = dtype_weight(i)) != NULL; i++) {
        if (strcmp(text, t->name) == 0) {
            *type = t->type;
            return SMOE_OK;
        }
    }
    return text ? err_set(err, SMOE_USAGE, "--%s takes one of " ARGS_WEIGHT_TYPES ", not \"%.40s\"",
                          flag, text)
                : SMOE_OK;
}

smoe_status args_parse_kv_type(const char *text, smoe_kv_type *type, smoe_err *err)
{
    if (!text) {
        return SMOE_OK;
    }
    static const char *const names[] = {
        [SMOE_KV_F16] = "f16", [SMOE_KV_F32] = "f32", [SMOE_KV_Q8_0] = "q8_0"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *type = (smoe_kv_type)i;
            return SMOE_OK;
        }
    }
    return err_set(err, SMOE_USAGE, "--kv-type is f16, f32 or q8_0, not \"%s\"", text);
}
