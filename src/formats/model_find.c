/* model_find.c: MODEL as people type it -> the paths of its two files.
 *
 * A stem wins over a directory of the same name: after `smoe shatter Qwen3` the checkpoint
 * directory Qwen3 and the files Qwen3.smoe, Qwen3.scout.safetensors lie side by side. */
#include <dirent.h>
#include <errno.h>

#include "base/mem.h"
#include "formats/vault.h"

static const char VAULT_SUFFIX[] = ".smoe", SCOUT_SUFFIX[] = ".scout.safetensors";

static bool ends_with(const char *s, const char *suffix)
{
    return slice_ends(slice_from(s), slice_from(suffix)) && strlen(s) > strlen(suffix);
}

static char *concat(const char *a, size_t n_a, const char *b)
{
    size_t n_b = strlen(b);
    char *s = mem_alloc(n_a + n_b + 1);
    if (s != NULL) {
        memcpy(s, a, n_a);
        memcpy(s + n_a, b, n_b + 1);
    }
    return s;
}

static smoe_status pair_of_stem(const char *stem, size_t n_stem, char **vault_path,
                                char **scout_path, smoe_err *err)
{
    *vault_path = concat(stem, n_stem, VAULT_SUFFIX);
    *scout_path = concat(stem, n_stem, SCOUT_SUFFIX);
    if (*vault_path == NULL || *scout_path == NULL) {
        return err_nomem(err, "a path", n_stem);
    }
    bool has_vault = file_exists(*vault_path), has_scout = file_exists(*scout_path);
    if (!has_vault && !has_scout) {
        return err_set(err, SMOE_IO,
                       "there is no model \"%.*s\": neither %s nor %s exists; make one with "
                       "smoe shatter",
                       (int)n_stem, stem, *vault_path, *scout_path);
    }
    if (!has_vault || !has_scout) {
        return err_set(
            err, SMOE_IO, "%s exists, but %s does not; a model is both files, side by side",
            has_vault ? *vault_path : *scout_path, has_vault ? *scout_path : *vault_path);
    }
    return SMOE_OK;
}

/* The one stem in the directory that has both files; owned by the caller. */
static smoe_status stem_in_dir(const char *dir_path, char **stem, smoe_err *err)
{
    smoe_status status = SMOE_OK;
    DIR *dir = opendir(dir_path);
    if (dir == NULL) {
        return err_errno(err, SMOE_IO, "%s cannot be opened", dir_path);
    }
    *stem = NULL;
    for (struct dirent *e; status == SMOE_OK && (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.' || !ends_with(e->d_name, VAULT_SUFFIX)) {
            continue;
        }
        char *path = path_join(dir_path, e->d_name), *scout_path = NULL;
        size_t n = path == NULL ? 0 : strlen(path) - strlen(VAULT_SUFFIX);
        scout_path = path == NULL ? NULL : concat(path, n, SCOUT_SUFFIX);
        if (scout_path == NULL) {
            status = err_nomem(err, "a path", strlen(e->d_name));
        } else if (file_exists(scout_path) && *stem != NULL) {
            status = err_set(err, SMOE_USAGE,
                             "%s holds more than one model (%s and %.*s); name one", dir_path,
                             *stem, (int)n, path);
        } else if (file_exists(scout_path)) {
            *stem = mem_strndup(path, n);
            status = *stem != NULL ? SMOE_OK : err_nomem(err, "a path", n);
        }
        mem_free(path);
        mem_free(scout_path);
    }
    closedir(dir);
    if (status == SMOE_OK && *stem == NULL) {
        status = err_set(err, SMOE_IO,
                         "%s holds no model (NAME.smoe beside NAME.scout.safetensors); make "
                         "one with smoe shatter",
                         dir_path);
    }
    return status;
}

static bool stem_has_file(const char *model)
{
    char *v = concat(model, strlen(model), VAULT_SUFFIX),
         *s = concat(model, strlen(model), SCOUT_SUFFIX);
    bool found = (v != NULL && file_exists(v)) || (s != NULL && file_exists(s));
    mem_free(v);
    mem_free(s);
    return found;
}

static smoe_status find(const char *model, char **vault_path, char **scout_path, smoe_err *err)
{
    size_t n = strlen(model);
    if (!stem_has_file(model)) {
        if (file_is_dir(model)) {
            char *stem = NULL;
            smoe_status status = stem_in_dir(model, &stem, err);
            if (status == SMOE_OK) {
                status = pair_of_stem(stem, strlen(stem), vault_path, scout_path, err);
            }
            mem_free(stem);
            return status;
        }
        if (ends_with(model, SCOUT_SUFFIX)) {
            n -= strlen(SCOUT_SUFFIX);
        } else if (ends_with(model, VAULT_SUFFIX)) {
            n -= strlen(VAULT_SUFFIX);
        }
    }
    return pair_of_stem(model, n, vault_path, scout_path, err);
}

smoe_status model_find(const char *model, char **vault_path, char **scout_path, smoe_err *err)
{
    *vault_path = *scout_path = NULL;
    smoe_status status = find(model, vault_path, scout_path, err);
    if (status != SMOE_OK) {
        mem_free(*vault_path);
        mem_free(*scout_path);
        *vault_path = *scout_path = NULL;
    }
    return status;
}
