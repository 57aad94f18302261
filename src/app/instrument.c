/* instrument.c: see instrument.h. Both forms hold the same fields in the same order. */
#include "app/instrument.h"

#include <stdio.h>
#include <string.h>

smoe_status instrument_parse(const char *text, instrument *out, smoe_err *err)
{
    out->is_on = text != NULL;
    out->is_json = text && strcmp(text, "json") == 0;
    if (text && *text && !out->is_json) {
        return err_set(err, SMOE_USAGE, "--instrument=%s is not known; --instrument prints a line "
                       "for people, --instrument=json one for programs", text);
    }
    return SMOE_OK;
}

struct field {
    const char *name;
    double value;
    int n_digits; /* after the point */
};

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

void instrument_line(const instrument *in, const smoe_result *r)
{
    uint64_t n_run = r->n_prompt - r->n_cached + (r->n_generated ? r->n_generated - 1 : 0);
    double n_bytes = (double)r->bytes_read;
    const struct field fields[] = {
        {"prompt", r->n_prompt, 0},
        {"cached", r->n_cached, 0},
        {"generated", r->n_generated, 0},
        {"prefill_ms", ms(r->prefill_ns), 1},
        {"decode_ms", ms(r->decode_ns), 1},
        {"attention_ms", ms(r->times.attention_ns), 1},
        {"router_ms", ms(r->times.router_ns), 1},
        {"experts_ms", ms(r->times.experts_ns), 1},
        {"wait_ms", ms(r->times.wait_ns), 1},
        {"head_ms", ms(r->times.head_ns), 1},
        {"acquires", (double)r->n_expert_acquires, 0},
        {"hits", (double)r->n_expert_hits, 0},
        {"hit_rate", r->n_expert_acquires
                         ? (double)r->n_expert_hits / (double)r->n_expert_acquires : 1, 4},
        {"evictions", (double)r->n_evictions, 0},
        {"bytes_read", n_bytes, 0},
        {"bytes_read_per_token", n_run ? n_bytes / (double)n_run : 0, 0},
        {"read_gb_s", r->read_ns ? n_bytes / (double)r->read_ns : 0, 3},
        {"prefetch_bytes", (double)(r->n_guessed * in->record_bytes), 0},
        {"prefetch_used_bytes", (double)(r->n_guesses_used * in->record_bytes), 0},
        {"prefetch_wasted_bytes", (double)(r->n_guesses_wasted * in->record_bytes), 0},
        {"prewarm_bytes", (double)(r->n_prewarmed * in->record_bytes), 0},
        {"prewarm_used_bytes", (double)(r->n_prewarmed_used * in->record_bytes), 0},
        {"prewarm_wasted_bytes", (double)(r->n_prewarmed_wasted * in->record_bytes), 0},
    };
    fprintf(stderr, in->is_json ? "{" : "smoe-engine: request");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const struct field *f = &fields[i];
        fprintf(stderr, in->is_json ? "%s\"%s\":%.*f" : "%s%s=%.*f",
                !in->is_json ? " " : i > 0 ? "," : "", f->name, f->n_digits, f->value);
    }
    fprintf(stderr, in->is_json ? "}\n" : "\n");
}
