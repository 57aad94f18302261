/* app.c: see app.h. */
#include "app/app.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/read_tokenizer.h"
#include "base/file.h"
#include "base/mem.h"
#include "formats/vault.h"

enum { PATH_BYTES = 4096, EMBEDDED_MAX_BYTES = 256 << 20 };

int app_fail(const char *command, const smoe_err *err)
{
    fprintf(stderr, "smoe %s: %s\n", command, err->text);
    return err->code == SMOE_USAGE ? 2 : 1;
}

/* Directory of the running executable; false where the system does not say. */
static bool own_dir(char *dir, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", dir, size - 1);
    if (n <= 0) {
        return false;
    }
    dir[n] = '\0';
    char *slash = strrchr(dir, '/');
    if (slash) {
        *slash = '\0';
    }
    return slash != NULL;
}

char *app_engine_path(void)
{
    char dir[PATH_BYTES];
    char *path = own_dir(dir, sizeof dir) ? path_join(dir, "smoe-engine") : NULL;
    if (path && access(path, X_OK) == 0) {
        return path;
    }
    mem_free(path);
    return mem_strdup("smoe-engine");
}

smoe_status app_find_model(const char *model, char **vault_path, char **scout_path,
                           smoe_err *err)
{
    char dir[PATH_BYTES];
    if (model) {
        return model_find(model, vault_path, scout_path, err);
    }
    char *shipped = own_dir(dir, sizeof dir) ? path_join(dir, "models/smoe-tiny") : NULL;
    if (!shipped) {
        return err_set(err, SMOE_USAGE, "say which model: a stem, a file or a directory");
    }
    smoe_status status = model_find(shipped, vault_path, scout_path, err);
    if (status != SMOE_OK) {
        err_set(err, status,
                "the model that ships is not there yet (%s.smoe); `make model` makes it, or "
                "name another model",
                shipped);
    }
    mem_free(shipped);
    return status;
}

char *app_model_name(const char *vault_path)
{
    const char *slash = strrchr(vault_path, '/');
    const char *name = slash != NULL ? slash + 1 : vault_path;
    const char *dot = strrchr(name, '.');
    return mem_strndup(name, dot != NULL ? (size_t)(dot - name) : strlen(name));
}

uint32_t app_context(uint32_t n_asked, uint32_t n_ctx_train)
{
    uint32_t n_default = n_ctx_train < APP_DEFAULT_CTX ? n_ctx_train : APP_DEFAULT_CTX;
    return n_asked != 0 ? n_asked : n_default;
}

smoe_status app_open_chat_format(const char *scout_path, smoe_chat_format **out, smoe_err *err)
{
    smoe_status status;
    scout s;
    smoe_chat_files files = {.tokenizer = NULL};
    buf config, chat_template;
    buf_init(&config, EMBEDDED_MAX_BYTES);
    buf_init(&chat_template, EMBEDDED_MAX_BYTES);
    TRY(scout_open(&s, scout_path, err));
    CHECK(scout_read_file(&s, "tokenizer_config.json", &config, err));
    if (scout_has_file(&s, "chat_template.jinja")) {
        CHECK(scout_read_file(&s, "chat_template.jinja", &chat_template, err));
    }
    files = (smoe_chat_files){.tokenizer_config_json = config.data,
                              .tokenizer_config_json_len = config.len,
                              .chat_template = chat_template.data,
                              .chat_template_len = chat_template.len};
    CHECK(app_read_tokenizer(&s, &files.tokenizer, err));
    CHECK(smoe_chat_format_new(&files, out, err));
out:
    scout_close(&s);
    buf_fini(&config);
    buf_fini(&chat_template);
    return status;
}
