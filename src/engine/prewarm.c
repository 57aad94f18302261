/* prewarm.c: see prewarm.h. */
#include "engine/prewarm.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

enum { STEP_MS = 1, SAVE_MS = 60 * 1000 };

static const uint64_t ms_ns = 1000 * 1000;

static void say(const prewarm *w, const smoe_err *err, const char *consequence)
{
    char sentence[sizeof err->text + 128];
    if (w->log) {
        snprintf(sentence, sizeof sentence, "%s; %s", err->text, consequence);
        w->log(w->log_ctx, sentence);
    }
}

smoe_status prewarm_init(prewarm *w, const vault *v, void (*log)(void *ctx, const char *sentence),
                         void *log_ctx, smoe_err *err)
{
    const char *vault_path = v->st.file.path;
    size_t n_bytes = strlen(vault_path) + sizeof ".heat";
    *w = (prewarm){.saved_ns = clock_ns(), .log = log, .log_ctx = log_ctx};
    TRY(heat_init(&w->heat, v, err));
    w->path = mem_alloc(n_bytes);
    if (!w->path) {
        heat_fini(&w->heat);
        return err_nomem(err, "a path", n_bytes);
    }
    snprintf(w->path, n_bytes, "%s.heat", vault_path);
    smoe_err why;
    if (heat_load(&w->heat, w->path, &why) != SMOE_OK) {
        say(w, &why, "it is ignored, and replaced when there is a new history");
    }
    return SMOE_OK;
}

static void save(prewarm *w)
{
    smoe_err why;
    w->saved_ns = clock_ns();
    if (w->heat.is_changed && heat_save(&w->heat, w->path, &why) != SMOE_OK) {
        say(w, &why, "the history of experts is not kept");
        mem_free(w->path); /* once is enough */
        w->path = NULL;
    }
}

void prewarm_fini(prewarm *w)
{
    if (w->path) {
        save(w);
    }
    mem_free(w->path);
    heat_fini(&w->heat);
    *w = (prewarm){0};
}

int prewarm_step(prewarm *w, experts *x)
{
    if (experts_warm(x)) {
        return STEP_MS;
    }
    if (!w->path || !w->heat.is_changed) {
        return -1;
    }
    uint64_t since_ms = (clock_ns() - w->saved_ns) / ms_ns;
    if (since_ms < SAVE_MS) {
        return (int)(SAVE_MS - since_ms);
    }
    save(w);
    return -1;
}
