/* opts.c: see opts.h. */
#include "base/opts.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Levenshtein distance of short words, for "did you mean". */
static size_t distance(const char *a, const char *b)
{
    enum { MAX = 32 };
    size_t n = strlen(a), m = strlen(b), row[MAX + 1];
    if (n > MAX || m > MAX) {
        return MAX;
    }
    for (size_t j = 0; j <= m; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            best = row[j] + 1 < best ? row[j] + 1 : best;
            row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
        }
    }
    return row[m];
}

static smoe_status unknown_flag(const opt *table, const char *name, smoe_err *err)
{
    const char *nearest = NULL;
    size_t best = 3; /* further away than two edits, a suggestion would only confuse */
    for (const opt *o = table; o->name; o++) {
        size_t d = distance(name, o->name);
        if (d < best) {
            best = d;
            nearest = o->name;
        }
    }
    if (nearest) {
        return err_set(err, SMOE_USAGE, "there is no flag --%s; did you mean --%s?", name, nearest);
    }
    return err_set(err, SMOE_USAGE, "there is no flag --%s; --help lists the flags", name);
}

smoe_status opts_parse_size(const char *text, const char *what, uint64_t *bytes, smoe_err *err)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    static const char units[] = "KMGT";
    double scale = 1;
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (unit) {
        scale = (double)(UINT64_C(1) << (10 * (unit - units + 1)));
        end++;
        end += strncasecmp(end, "iB", 2) == 0 ? 2 : (toupper((unsigned char)*end) == 'B');
    }
    value *= scale;
    if (end == text || *end || errno || !isfinite(value) || value < 0 || value >= 0x1p63) {
        return err_set(err, SMOE_USAGE, "--%s takes a size such as 512M or 12G, not \"%s\"", what,
                       text);
    }
    *bytes = (uint64_t)value;
    return SMOE_OK;
}

static bool out_of_range(const opt *o, double v)
{
    return !(o->min == 0 && o->max == 0) && (v < o->min || v > o->max);
}

static smoe_status bad_number(const opt *o, const char *text, smoe_err *err)
{
    const char *kind = o->kind == OPT_FLOAT ? "a number" : "a whole number";
    if (o->min == 0 && o->max == 0) {
        return err_set(err, SMOE_USAGE, "--%s takes %s, not \"%s\"", o->name, kind, text);
    }
    return err_set(err, SMOE_USAGE, "--%s takes %s from %.10g to %.10g, not \"%s\"", o->name, kind,
                   o->min, o->max, text);
}

static smoe_status set_value(const opt *o, const char *text, smoe_err *err)
{
    char *end;
    errno = 0;
    switch (o->kind) {
    case OPT_FLAG:
        *(bool *)o->dest = true;
        return SMOE_OK;
    case OPT_OPTIONAL:
    case OPT_TEXT:
        *(const char **)o->dest = text;
        return SMOE_OK;
    case OPT_SIZE:
        return opts_parse_size(text, o->name, o->dest, err);
    case OPT_FLOAT: {
        double v = strtod(text, &end);
        if (end == text || *end || !isfinite(v) || out_of_range(o, v)) {
            return bad_number(o, text, err);
        }
        *(float *)o->dest = (float)v;
        return SMOE_OK;
    }
    case OPT_U32:
    case OPT_U64: {
        unsigned long long v = strtoull(text, &end, 10);
        if (!isdigit((unsigned char)*text) || *end || errno || out_of_range(o, (double)v) ||
            (o->kind == OPT_U32 && v > UINT32_MAX)) {
            return bad_number(o, text, err);
        }
        if (o->kind == OPT_U32) {
            *(uint32_t *)o->dest = (uint32_t)v;
        } else {
            *(uint64_t *)o->dest = v;
        }
        return SMOE_OK;
    }
    }
    return err_set(err, SMOE_INTERNAL, "--%s has no kind", o->name);
}

smoe_status opts_parse(const opt *table, int argc, char **argv, int first, const char **pos,
                       size_t max_pos, size_t *n_pos, smoe_err *err)
{
    bool flags_over = false;
    *n_pos = 0;
    for (int i = first; i < argc; i++) {
        const char *arg = argv[i];
        if (flags_over || arg[0] != '-' || arg[1] == '\0') {
            if (*n_pos == max_pos) {
                return err_set(err, SMOE_USAGE,
                               "\"%s\" is one argument too many; --help shows what is "
                               "expected",
                               arg);
            }
            pos[(*n_pos)++] = arg;
            continue;
        }
        if (strcmp(arg, "--") == 0) {
            flags_over = true;
            continue;
        }
        char name[64];
        const char *body = arg + 1 + (arg[1] == '-');
        const char *equals = strchr(body, '=');
        size_t n = equals ? (size_t)(equals - body) : strlen(body);
        snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), body);
        const opt *o = table;
        while (o->name && strcmp(o->name, name) != 0) {
            o++;
        }
        if (!o->name) {
            return unknown_flag(table, name, err);
        }
        const char *value = equals ? equals + 1 : NULL;
        if (o->kind == OPT_FLAG) {
            if (value) {
                return err_set(err, SMOE_USAGE, "--%s takes no value", name);
            }
        } else if (!value && o->kind == OPT_OPTIONAL) {
            value = "";
        } else if (!value) {
            if (i + 1 == argc) {
                return err_set(err, SMOE_USAGE, "--%s needs a value (%s)", name, o->arg);
            }
            value = argv[++i];
        }
        TRY(set_value(o, value, err));
        if (o->seen) {
            *o->seen = true;
        }
    }
    return SMOE_OK;
}

void opts_help(const opt *table, char *out, size_t size)
{
    size_t used = 0;
    if (size) {
        out[0] = '\0';
    }
    for (const opt *o = table; o->name && used < size; o++) {
        char left[64];
        snprintf(left, sizeof left, "%s%s%s%s", strlen(o->name) == 1 ? "-" : "--", o->name,
                 o->kind == OPT_OPTIONAL ? "" : " ", o->arg ? o->arg : "");
        int n = snprintf(out + used, size - used, "  %-24s %s\n", left, o->help);
        used += n > 0 ? (size_t)n : 0;
    }
}
