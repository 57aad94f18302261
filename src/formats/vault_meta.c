/* vault_meta.c: see vault_meta.h. */
#include "formats/vault_meta.h"

#include <string.h>

#include "formats/checksum.h"
#include "formats/vault.h"

smoe_status vault_meta_need(const safetensors *st, const char *key, slice *value, smoe_err *err)
{
    if (!safetensors_meta(st, key, value)) {
        return err_set(err, SMOE_FORMAT,
                       "%s has no metadata \"%s\"; it was not written by smoe, or is "
                       "damaged: make it again with smoe shatter",
                       st->file.path, key);
    }
    return SMOE_OK;
}

static smoe_status check_version(const safetensors *st, slice version, smoe_err *err)
{
    uint32_t n = 0;
    bool ok = version.len > 0 && version.len <= 6;
    for (size_t i = 0; ok && i < version.len; i++) {
        ok = version.data[i] >= '0' && version.data[i] <= '9';
        n = n * 10 + (uint32_t)(version.data[i] - '0');
    }
    if (!ok || n == 0) {
        return err_set(err, SMOE_FORMAT, "%s: format version \"%.*s\" is not a number",
                       st->file.path, NAME_ARG(version));
    }
    if (n < VAULT_FORMAT_VERSION) {
        return err_set(err, SMOE_UNSUPPORTED,
                       "%s has format version %u, whose rows are not in the order that this "
                       "program reads (version %d); make it again with smoe shatter",
                       st->file.path, n, VAULT_FORMAT_VERSION);
    }
    if (n > VAULT_FORMAT_VERSION) {
        return err_set(
            err, SMOE_UNSUPPORTED,
            "%s has format version %u, but this program reads versions up to %d; use a newer "
            "smoe, or make the file again with this one's smoe shatter",
            st->file.path, n, VAULT_FORMAT_VERSION);
    }
    return SMOE_OK;
}

smoe_status vault_meta_check(const safetensors *st, const char *kind, char lineage[33],
                             smoe_err *err)
{
    slice version, kind_found, arch, id;
    if (!safetensors_meta(st, "smoe.format_version", &version)) {
        return err_set(err, SMOE_FORMAT,
                       "%s is a safetensors file, but not a smoe %s (it has no "
                       "metadata \"smoe.format_version\"); make one with smoe shatter",
                       st->file.path, kind);
    }
    TRY(check_version(st, version, err));
    TRY(vault_meta_need(st, "smoe.kind", &kind_found, err));
    if (!slice_is(kind_found, kind)) {
        return err_set(err, SMOE_MISMATCH,
                       "%s is a smoe %.*s, but a %s is needed here: are the two "
                       "files swapped?",
                       st->file.path, NAME_ARG(kind_found), kind);
    }
    TRY(vault_meta_need(st, "smoe.architecture", &arch, err));
    if (!slice_is(arch, "qwen3_moe")) {
        return err_set(err, SMOE_UNSUPPORTED,
                       "%s holds architecture \"%.*s\"; this program runs "
                       "qwen3_moe",
                       st->file.path, NAME_ARG(arch));
    }
    TRY(vault_meta_need(st, "smoe.lineage", &id, err));
    if (!checksum_list_ok(id, 2)) {
        return err_set(err, SMOE_FORMAT, "%s: lineage \"%.*s\" is not 32 hex digits", st->file.path,
                       NAME_ARG(id));
    }
    memcpy(lineage, id.data, 32);
    lineage[32] = '\0';
    return SMOE_OK;
}
