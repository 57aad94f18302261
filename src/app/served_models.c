/* served_models.c: see served_models.h. */
#include "app/served_models.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/app.h"
#include "base/file.h"
#include "base/mem.h"
#include "formats/vault.h"
#include "tokenizer/utf8.h"

enum { MAX_ARGS = 8 + 2 * SERVED_N_TEXTS + 2 };

struct served {
    char *vault_path, *scout_path, *name, *lineage;
    char ctx[16];
    const char *argv[MAX_ARGS];
};

static const char *const text_flags[SERVED_N_TEXTS] = {
    [SERVED_TEMPERATURE] = "--temperature", [SERVED_TOP_P] = "--top-p",
    [SERVED_TOP_K] = "--top-k",             [SERVED_REP_PENALTY] = "--rep-penalty",
    [SERVED_SEED] = "--seed",               [SERVED_THREADS] = "--threads",
    [SERVED_RING] = "--ring",               [SERVED_MEM_LIMIT] = "--mem-limit",
    [SERVED_KV_TYPE] = "--kv-type",
};

static void make_argv(struct served *s, const char *engine, uint32_t n_ctx,
                      const served_engine_flags *flags)
{
    size_t n = 0;
    snprintf(s->ctx, sizeof s->ctx, "%u", n_ctx);
    const char *fixed[] = {engine, "--serve", "--vault", s->vault_path, "--scout", s->scout_path,
                           "--ctx", s->ctx};
    for (; n < sizeof fixed / sizeof *fixed; n++) {
        s->argv[n] = fixed[n];
    }
    for (size_t i = 0; i < SERVED_N_TEXTS; i++) {
        if (flags->texts[i] != NULL) {
            s->argv[n++] = text_flags[i];
            s->argv[n++] = flags->texts[i];
        }
    }
    if (flags->no_prewarm) {
        s->argv[n++] = "--no-prewarm";
    }
    s->argv[n] = NULL;
}

/* Names go into JSON, log lines and labels of metrics as they are. */
static bool is_plain(const char *name)
{
    size_t i = 0;
    while ((unsigned char)name[i] >= ' ' && name[i] != 0x7F) {
        i++;
    }
    return i > 0 && name[i] == '\0' && utf8_valid_prefix(slice_from(name)) == i;
}

static void served_free(struct served *s)
{
    mem_free(s->vault_path);
    mem_free(s->scout_path);
    mem_free(s->name);
    mem_free(s->lineage);
    *s = (struct served){0};
}

static smoe_status describe(served_models *m, struct served *s, const served_engine_flags *flags,
                            smoe_err *err)
{
    scout scout_file;
    struct stat st = {0};
    s->name = app_model_name(s->vault_path);
    if (s->name != NULL && !is_plain(s->name)) {
        return err_set(err, SMOE_FORMAT,
                       "the name of %s is empty, is not UTF-8 or holds control characters; rename "
                       "both files", s->vault_path);
    }
    TRY(scout_open(&scout_file, s->scout_path, err));
    uint32_t n_ctx = app_context(flags->n_ctx, scout_file.config.n_ctx_train);
    s->lineage = mem_strdup(scout_file.lineage);
    scout_close(&scout_file);
    if (s->lineage == NULL || s->name == NULL) {
        return err_nomem(err, "a model's name", 64);
    }
    make_argv(s, m->engine, n_ctx, flags);
    stat(s->vault_path, &st);
    m->list[m->n] = (http_model){.name = s->name, .lineage = s->lineage, .engine_argv = s->argv,
                                 .scout_path = s->scout_path, .n_ctx = n_ctx,
                                 .created = (int64_t)st.st_mtime};
    return SMOE_OK;
}

/* The index of a model with that name; m->n when there is none. */
static size_t find_name(const served_models *m, const char *name)
{
    size_t i = 0;
    while (i < m->n && strcmp(m->list[i].name, name) != 0) {
        i++;
    }
    return i;
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static smoe_status add(served_models *m, const char *model, const served_engine_flags *flags,
                       smoe_err *err)
{
    struct served *s = &m->owned[m->n];
    if (m->n == SERVED_MAX) {
        return err_set(err, SMOE_USAGE, "more than %d models", SERVED_MAX);
    }
    smoe_status status = app_find_model(model, &s->vault_path, &s->scout_path, err);
    if (status == SMOE_OK) {
        status = describe(m, s, flags, err);
    }
    if (status != SMOE_OK) {
        served_free(s);
        return status;
    }
    size_t twin = find_name(m, s->name);
    if (twin < m->n) {
        bool same = same_file(m->owned[twin].vault_path, s->vault_path);
        status = same ? SMOE_OK
                      : err_set(err, SMOE_USAGE, "%s and %s have the same name; rename one pair",
                                m->owned[twin].vault_path, s->vault_path);
        served_free(s);
        return status;
    }
    m->n++;
    return SMOE_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The paths of the vaults in dir, in order of their names; owned by the caller, as is each. */
static smoe_status list_vaults(const char *dir, char **paths, size_t *n, smoe_err *err)
{
    const struct dirent *entry;
    DIR *d = opendir(dir);
    *n = 0;
    if (d == NULL) {
        return err_errno(err, SMOE_IO, "--vault-dir: %s cannot be read", dir);
    }
    while (*n < SERVED_MAX && (entry = readdir(d)) != NULL) {
        if (slice_ends(slice_from(entry->d_name), slice_from(".smoe"))) {
            paths[*n] = path_join(dir, entry->d_name);
            *n += paths[*n] != NULL;
        }
    }
    closedir(d);
    qsort(paths, *n, sizeof *paths, by_name);
    return SMOE_OK;
}

static smoe_status add_dir(served_models *m, const char *dir, const served_engine_flags *flags,
                           smoe_err *err)
{
    char *paths[SERVED_MAX];
    size_t n;
    smoe_status status = list_vaults(dir, paths, &n, err);
    for (size_t i = 0; i < n; i++) {
        smoe_err why;
        smoe_status added = status == SMOE_OK ? add(m, paths[i], flags, &why) : SMOE_OK;
        if (added == SMOE_USAGE || added == SMOE_NOMEM) {
            status = err_set(err, added, "%s", why.text);
        } else if (added != SMOE_OK) {
            smoe_err line;
            err_set(&line, added, "%s is left out: %s", paths[i], why.text);
            fprintf(stderr, "smoe http: %s\n", line.text);
        }
        mem_free(paths[i]);
    }
    return status;
}

smoe_status served_models_find(served_models *m, const char *const *names, size_t n_names,
                               const char *dir, const served_engine_flags *flags, smoe_err *err)
{
    m->n = 0;
    m->engine = app_engine_path();
    m->owned = mem_calloc(SERVED_MAX + 1, sizeof *m->owned);
    if (m->engine == NULL || m->owned == NULL) {
        return err_nomem(err, "the table of models", (SERVED_MAX + 1) * sizeof *m->owned);
    }
    for (size_t i = 0; i < n_names; i++) {
        TRY(add(m, names[i], flags, err));
    }
    if (dir != NULL) {
        TRY(add_dir(m, dir, flags, err));
    } else if (n_names == 0) {
        TRY(add(m, NULL, flags, err));
    }
    return m->n > 0 ? SMOE_OK : err_set(err, SMOE_USAGE, "there is no model in %s", dir);
}

void served_models_free(served_models *m)
{
    for (size_t i = 0; m->owned != NULL && i < m->n; i++) {
        served_free(&m->owned[i]);
    }
    mem_free(m->owned);
    mem_free(m->engine);
}
