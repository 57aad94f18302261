/* core.c: see core.h. */
#include "http/core.h"

#include <stdio.h>
#include <unistd.h>
#ifdef __APPLE__
#include <sys/random.h>
#endif

#include "base/clock.h"
#include "base/mem.h"

smoe_status core_init(http_core *c, const http_options *options, smoe_err *err)
{
    *c = (http_core){.options = options};
    c->formats = mem_calloc(options->n_models, sizeof *c->formats);
    if (c->formats == NULL) {
        return err_nomem(err, "the table of models", options->n_models * sizeof *c->formats);
    }
    if (getentropy(&c->id_start, sizeof c->id_start) != 0) {
        c->id_start = clock_ns() ^ (uint64_t)getpid() << 32; /* unique enough for a log */
    }
    pthread_mutex_init(&c->formats_lock, NULL);
    queue_init(&c->queue, options->max_waiting);
    metrics_init(&c->metrics);
    return SMOE_OK;
}

void core_fini(http_core *c)
{
    if (c->formats == NULL) {
        return;
    }
    for (size_t i = 0; i < c->options->n_models; i++) {
        smoe_chat_format_free(c->formats[i]);
    }
    mem_free(c->formats);
    pthread_mutex_destroy(&c->formats_lock);
    queue_fini(&c->queue);
    metrics_fini(&c->metrics);
}

const http_model *core_find_model(http_core *c, slice name)
{
    if (name.len == 0) {
        return atomic_load(&c->worker.model);
    }
    for (size_t i = 0; i < c->options->n_models; i++) {
        if (slice_is(name, c->options->models[i].name)) {
            return &c->options->models[i];
        }
    }
    return NULL;
}

smoe_status core_format(http_core *c, const http_model *model, const smoe_chat_format **out,
                        smoe_err *err)
{
    smoe_status status = SMOE_OK;
    smoe_chat_format **slot = &c->formats[model - c->options->models];
    pthread_mutex_lock(&c->formats_lock);
    if (*slot == NULL) {
        status = c->options->open_format(model, slot, err);
    }
    *out = *slot;
    pthread_mutex_unlock(&c->formats_lock);
    return status;
}

void core_make_id(http_core *c, char id[33])
{
    uint64_t n = atomic_fetch_add(&c->n_ids, 1) + 1;
    /* Odd multiples of different numbers differ. */
    snprintf(id, 33, "%016llx%016llx",
             (unsigned long long)((c->id_start + n) * 0x9E3779B97F4A7C15u),
             (unsigned long long)c->id_start);
}
