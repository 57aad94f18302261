/* settings.c: see settings.h. */
#include "chat/settings.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_TOKENS = N_SETTINGS - 1 };

static const struct {
    const char *name;
    const char *key; /* of the protocol; NULL = the console's own */
    double min, max;
    bool whole;
} table[N_SETTINGS] = {
    {"temperature", "t", 0, 100, false}, {"top-p", "p", 1e-6, 1, false},
    {"top-k", "k", 1, 1024, true},       {"rep-penalty", "r", 0.01, 100, false},
    {"min-p", "min_p", 0, 1, false},     {"presence-penalty", "presence_penalty", -2, 2, false},
    {"frequency-penalty", "frequency_penalty", -2, 2, false},
    {"seed", "s", 0, 1.8e19, true},      {"max-tokens", NULL, 1, 1e9, true},
};

static bool is_number(const char *text, bool whole)
{
    static const char digits[] = "0123456789";
    text += !whole && *text == '-';
    size_t n = strspn(text, digits);
    if (!whole && text[n] == '.') {
        n += 1 + strspn(text + n + 1, digits);
    }
    return n > 0 && text[n] == '\0';
}

smoe_status settings_set(settings *s, slice name_and_value, smoe_err *err)
{
    char name[SETTING_TEXT], value[SETTING_TEXT], text[2 * SETTING_TEXT];
    if (name_and_value.len >= sizeof text) {
        return err_set(err, SMOE_USAGE, "/set takes a name and a number");
    }
    memcpy(text, name_and_value.data, name_and_value.len);
    text[name_and_value.len] = '\0';
    if (sscanf(text, "%31s %31s", name, value) != 2) {
        return err_set(err, SMOE_USAGE,
                       "/set takes a name and a number, as in /set temperature 0.2");
    }
    for (size_t i = 0; i < N_SETTINGS; i++) {
        if (strcmp(name, table[i].name) != 0) {
            continue;
        }
        bool reset = strcmp(value, "default") == 0;
        if (!reset && (!is_number(value, table[i].whole) || strtod(value, NULL) < table[i].min ||
                       strtod(value, NULL) > table[i].max)) {
            return err_set(err, SMOE_USAGE, "%s is a%s number from %g to %g, not \"%s\"", name,
                           table[i].whole ? " whole" : "", table[i].min, table[i].max, value);
        }
        snprintf(s->values[i], SETTING_TEXT, "%s", reset ? "" : value);
        if (i == MAX_TOKENS) {
            s->max_tokens = (uint32_t)strtoul(s->values[i], NULL, 10);
        }
        return SMOE_OK;
    }
    return err_set(err, SMOE_USAGE,
                   "there is no setting \"%s\"; there are temperature, top-p, top-k, rep-penalty, "
                   "min-p, presence-penalty, frequency-penalty, seed and max-tokens", name);
}

smoe_status settings_list(const settings *s, buf *out, smoe_err *err)
{
    for (size_t i = 0; i < N_SETTINGS; i++) {
        TRY(buf_printf(out, err, "%-17s %s\n", table[i].name,
                       *s->values[i] ? s->values[i] : "as started"));
    }
    return SMOE_OK;
}

void settings_overrides(const settings *s, char *out, size_t size)
{
    size_t n = 0;
    *out = '\0';
    for (size_t i = 0; i < N_SETTINGS && n < size; i++) {
        if (table[i].key && *s->values[i]) {
            n += (size_t)snprintf(out + n, size - n, "%s%s=%s", n ? " " : "", table[i].key,
                                  s->values[i]);
        }
    }
}
