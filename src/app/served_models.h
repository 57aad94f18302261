/* served_models.h: the models that `smoe http` offers, and how the engine is started for each. */
#ifndef APP_SERVED_MODELS_H
#define APP_SERVED_MODELS_H

#include "http/http.h"

enum { SERVED_MAX = 256 };

/* Flags that go to the engine as they are; it checks them. */
enum served_text {
    SERVED_TEMPERATURE,
    SERVED_TOP_P,
    SERVED_TOP_K,
    SERVED_REP_PENALTY,
    SERVED_SEED,
    SERVED_THREADS,
    SERVED_RING,
    SERVED_MEM_LIMIT,
    SERVED_KV_TYPE,
    SERVED_N_TEXTS,
};

typedef struct served_engine_flags {
    uint32_t n_ctx; /* 0 = 4096, or the model's maximum */
    const char *texts[SERVED_N_TEXTS]; /* NULL = not given */
    bool no_prewarm;
} served_engine_flags;

typedef struct served_models {
    http_model list[SERVED_MAX];
    struct served *owned; /* paths and command lines, as many */
    size_t n;
    char *engine;
} served_models;

/* names: MODEL as people type it. dir: every pair of files in it, too, or NULL. Neither: the model
 * that ships. SMOE_USAGE when two have the same name. A model of dir that cannot be read is left
 * out, with a line on stderr. Free it also after a failure. */
smoe_status served_models_find(served_models *m, const char *const *names, size_t n_names,
                               const char *dir, const served_engine_flags *flags, smoe_err *err);
void served_models_free(served_models *m);

#endif
