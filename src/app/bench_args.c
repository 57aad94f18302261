/* bench_args.c: see bench_args.h. */
#include "app/bench_args.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

smoe_status args_parse_type(const char *text, const char *flag, dtype *type, smoe_err *err)
{
    const dtype_info *info = text ? dtype_from_name(slice_from(text)) : NULL;
    if (!text) {
        return SMOE_OK;
    }
    if (!info || !(info->is_float_weight || info->is_quantized)) {
        return err_set(err, SMOE_USAGE,
                       "--%s is f32, f16, bf16, q8_0, q6_K, q5_K, q4_K, q4_0, q3_K or q2_K, not "
                       "\"%.40s\"",
                       flag, text);
    }
    *type = info->type;
    return SMOE_OK;
}

smoe_status args_parse_ring(const char *text, uint32_t *n_slots, double *fraction, smoe_err *err)
{
    char *end;
    double v = isdigit((unsigned char)*text) || *text == '.' ? strtod(text, &end) : -1;
    bool is_percent = v >= 0 && strcmp(end, "%") == 0;
    bool is_part = is_percent || strchr(text, '.') != NULL;
    bool ok = v >= 0 && (is_percent || *end == '\0') && strpbrk(text, "eExX") == NULL;
    v /= is_percent ? 100 : 1;
    if (!ok || (is_part ? v <= 0 || v > 1 : v > 4e9)) {
        return err_set(err, SMOE_USAGE,
                       "--ring takes a number of experts such as 800, or a part of all such as "
                       "0.25 or 25%%, not \"%.40s\"",
                       text);
    }
    *n_slots = is_part ? 0 : (uint32_t)v;
    *fraction = is_part ? v : 0;
    return SMOE_OK;
}

smoe_status args_parse_routing(const char *text, const routing_law **law, smoe_err *err)
{
    if (strcmp(text, "model") == 0) {
        *law = NULL;
    } else if (strcmp(text, "uniform") == 0) {
        *law = &ROUTING_UNIFORM;
    } else if (strcmp(text, "sticky") == 0) {
        *law = &ROUTING_STICKY;
    } else {
        return err_set(err, SMOE_USAGE, "--routing is model, uniform or sticky, not \"%.40s\"",
                       text);
    }
    return SMOE_OK;
}
