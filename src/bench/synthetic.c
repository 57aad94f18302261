/* synthetic.c: see synthetic.h. */
#include "bench/synthetic.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "bench/weight_pool.h"
#include "formats/checksum.h"
#include "formats/safetensors_write.h"
#include "formats/vault_write.h"
#include "json/json_write.h"

enum { MAX_TEXT_BYTES = 64 << 20 };

/* ---- plan ---- */

/* The weights follow from these facts, so the lineage does too; "1" is the way they are made. */
static void set_lineage(synthetic *s)
{
    checksum low, high;
    char types[64];
    int n = snprintf(types, sizeof types, "smoe bench 1 %s %s\n", dtype_get(s->sizes.experts)->name,
                     dtype_get(s->sizes.scout)->name);
    checksum_init(&low);
    checksum_init(&high);
    checksum_add(&low, types, (size_t)n);
    checksum_add(&low, s->config_text.data, s->config_text.len);
    checksum_add(&high, s->config_text.data, s->config_text.len);
    checksum_add(&high, types, (size_t)n);
    checksum_to_hex(checksum_end(&low), s->lineage);
    checksum_to_hex(checksum_end(&high), s->lineage + CHECKSUM_HEX);
    s->lineage[32] = '\0';
}

static smoe_status set_path(const synthetic *s, const char *suffix, char **path, smoe_err *err)
{
    char name[128];
    snprintf(name, sizeof name, "%s-%u-%s-%s%s", s->shape.name, s->shape.n_layer,
             dtype_get(s->sizes.experts)->name, dtype_get(s->sizes.scout)->name, suffix);
    *path = path_join(s->dir, name);
    return *path ? SMOE_OK : err_nomem(err, "a path", strlen(s->dir));
}

static smoe_status look_for_files(synthetic *s, smoe_err *err)
{
    vault v = {.st = {.file = FILE_CLOSED}};
    scout c = {.st = {.file = FILE_CLOSED}};
    smoe_err why;
    bool has_vault = file_exists(s->vault_path), has_scout = file_exists(s->scout_path);
    if (has_vault && has_scout) {
        s->is_written = vault_open(&v, s->vault_path, &why) == SMOE_OK &&
                        scout_open(&c, s->scout_path, &why) == SMOE_OK &&
                        vault_check_pair(&v, &c, &why) == SMOE_OK &&
                        strcmp(v.lineage, s->lineage) == 0;
    }
    vault_close(&v);
    scout_close(&c);
    if (s->is_written || (!has_vault && !has_scout)) {
        return SMOE_OK;
    }
    return err_set(err, SMOE_MISMATCH,
                   "%s is not part of the model that this benchmark would write there; remove "
                   "it and the file beside it, or choose another --dir",
                   has_vault ? s->vault_path : s->scout_path);
}

static smoe_status plan(synthetic *s, dtype experts, dtype scout_type, smoe_err *err)
{
    TRY(model_shape_config(&s->shape, &s->config_text, err));
    TRY(model_config_parse(buf_slice(&s->config_text), s->shape.name, &s->config, err));
    TRY(model_sizes_of(&s->config, s->shape.name, experts, scout_type, &s->sizes, err));
    s->n_bytes = s->sizes.vault_bytes + s->sizes.scout_bytes + s->config_text.len;
    set_lineage(s);
    TRY(set_path(s, ".smoe", &s->vault_path, err));
    TRY(set_path(s, ".scout.safetensors", &s->scout_path, err));
    return look_for_files(s, err);
}

smoe_status synthetic_init(synthetic *s, const model_shape *shape, dtype experts,
                           dtype scout_type, const char *dir, smoe_err *err)
{
    *s = (synthetic){.shape = *shape, .dir = dir};
    buf_init(&s->config_text, MAX_TEXT_BYTES);
    smoe_status status = plan(s, experts, scout_type, err);
    if (status != SMOE_OK) {
        synthetic_fini(s);
    }
    return status;
}

void synthetic_fini(synthetic *s)
{
    buf_fini(&s->config_text);
    mem_free(s->vault_path);
    mem_free(s->scout_path);
    s->vault_path = s->scout_path = NULL;
}

/* ---- headers ---- */

typedef struct job {
    synthetic *s;
    const synthetic_events *events;
    weight_pools pools;
    safetensors_writer scout, vault;
    uint8_t *record;
    buf text; /* a header value, or the checksums of the file being written */
    uint64_t done_bytes;
} job;

static smoe_status declare_scout(job *j, smoe_err *err)
{
    const synthetic *s = j->s;
    json_writer types;
    dense_tensor t;
    size_t n = 0;
    buf_clear(&j->text);
    jw_init(&types, &j->text);
    jw_begin_object(&types);
    for (; model_config_dense_tensor(&s->config, n, &t); n++) {
        TRY(scout_write_tensor(&j->scout, &types, &t, model_sizes_type(&s->sizes, &t), err));
    }
    jw_end_object(&types);
    TRY(jw_finish(&types, err));
    TRY(safetensors_writer_meta(&j->scout, "smoe.types", buf_slice(&j->text), err));
    TRY(safetensors_writer_meta(&j->scout, "smoe.eos_ids", slice_from("[]"), err));
    TRY(safetensors_writer_meta(&j->scout, "smoe.penalty_exempt_ids", slice_from("[]"), err));
    uint64_t n_config = s->config_text.len;
    TRY(safetensors_writer_add(&j->scout, slice_from("file/config.json"), "U8", &n_config, 1,
                               n_config, err));
    buf_clear(&j->text);
    return vault_write_common(&j->scout, "scout", s->config.arch, s->lineage, n + 1, err);
}

static smoe_status declare_vault(job *j, smoe_err *err)
{
    const synthetic *s = j->s;
    const model_sizes *z = &s->sizes;
    TRY(vault_write_records(&j->vault, &s->config, &z->gate, &z->up, &z->down, z->record_bytes,
                            err));
    return vault_write_common(&j->vault, "vault", s->config.arch, s->lineage,
                              (size_t)s->config.n_layer * s->config.n_expert, err);
}

/* ---- data ---- */

static smoe_status report(job *j, uint64_t n_bytes, smoe_err *err)
{
    const synthetic_events *e = j->events;
    j->done_bytes += n_bytes;
    if (e && e->progress) {
        e->progress(e->ctx, j->done_bytes, j->s->n_bytes);
    }
    if (e && e->cancelled && e->cancelled(e->ctx)) {
        return err_set(err, SMOE_CANCELLED, "interrupted; nothing was left on disk");
    }
    return SMOE_OK;
}

static smoe_status add_sum(job *j, uint64_t sum, smoe_err *err)
{
    char hex[CHECKSUM_HEX];
    checksum_to_hex(sum, hex);
    return buf_append(&j->text, hex, sizeof hex, err);
}

/* Norms scale nothing. */
static smoe_status write_ones(job *j, uint64_t n, smoe_err *err)
{
    enum { N_ONES = 256 };
    float ones[N_ONES];
    checksum sum;
    for (int i = 0; i < N_ONES; i++) {
        ones[i] = 1;
    }
    checksum_init(&sum);
    for (uint64_t done = 0; done < n; done += N_ONES) {
        size_t n_bytes = (size_t)(n - done < N_ONES ? n - done : N_ONES) * sizeof *ones;
        checksum_add(&sum, ones, n_bytes);
        TRY(safetensors_writer_append(&j->scout, ones, n_bytes, err));
    }
    TRY(add_sum(j, checksum_end(&sum), err));
    return report(j, n * sizeof *ones, err);
}

static float std_of(const synthetic *s, uint64_t cols, bool is_residual)
{
    return (float)(1 / sqrt((double)cols * (is_residual ? 2.0 * s->config.n_layer : 1)));
}

static smoe_status write_matrix(job *j, const dense_tensor *t, smoe_err *err)
{
    const weight_pool *from;
    checksum sum;
    dtype type = model_sizes_type(&j->s->sizes, t);
    float std = t->role == TENSOR_TOKEN_EMBD
                    ? 1
                    : std_of(j->s, t->cols, t->role == TENSOR_ATTN_OUTPUT);
    TRY(weight_pools_get(&j->pools, type, t->cols, std, &from, err));
    weight_pieces m =
        weight_pieces_of(&j->pools, from, dtype_matrix_bytes(type, t->rows, t->cols));
    checksum_init(&sum);
    while (weight_pieces_next(&m)) {
        checksum_add(&sum, m.data, (size_t)m.n_bytes);
        TRY(safetensors_writer_append(&j->scout, m.data, m.n_bytes, err));
        TRY(report(j, m.n_bytes, err));
    }
    return add_sum(j, checksum_end(&sum), err);
}

static smoe_status write_scout(job *j, smoe_err *err)
{
    const buf *config = &j->s->config_text;
    dense_tensor t;
    checksum sum;
    for (size_t i = 0; model_config_dense_tensor(&j->s->config, i, &t); i++) {
        TRY(t.n_dims == 1 ? write_ones(j, t.cols, err) : write_matrix(j, &t, err));
    }
    checksum_init(&sum);
    checksum_add(&sum, config->data, config->len);
    TRY(safetensors_writer_append(&j->scout, config->data, config->len, err));
    TRY(add_sum(j, checksum_end(&sum), err));
    TRY(safetensors_writer_meta(&j->scout, "smoe.checksums", buf_slice(&j->text), err));
    buf_clear(&j->text);
    return report(j, config->len, err);
}

static smoe_status write_record(job *j, smoe_err *err)
{
    const synthetic *s = j->s;
    const matrix_layout *parts[] = {&s->sizes.gate, &s->sizes.up, &s->sizes.down};
    for (int i = 0; i < 3; i++) {
        const matrix_layout *m = parts[i];
        const weight_pool *from;
        uint8_t *to = j->record + m->offset;
        TRY(weight_pools_get(&j->pools, m->type, m->cols,
                             std_of(s, m->cols, m == &s->sizes.down), &from, err));
        weight_pieces p =
            weight_pieces_of(&j->pools, from, dtype_matrix_bytes(m->type, m->rows, m->cols));
        while (weight_pieces_next(&p)) {
            memcpy(to, p.data, (size_t)p.n_bytes);
            to += p.n_bytes;
        }
    }
    TRY(add_sum(j, hash_bytes(j->record, (size_t)s->sizes.record_bytes), err));
    TRY(safetensors_writer_append(&j->vault, j->record, s->sizes.record_bytes, err));
    return report(j, s->sizes.record_bytes, err);
}

static smoe_status write_vault(job *j, smoe_err *err)
{
    size_t n = (size_t)j->s->config.n_layer * j->s->config.n_expert;
    for (size_t i = 0; i < n; i++) {
        TRY(write_record(j, err));
    }
    return safetensors_writer_meta(&j->vault, "smoe.checksums", buf_slice(&j->text), err);
}

/* Asked after the files were created, because that removes what a killed run left behind. */
static smoe_status check_free(const job *j, smoe_err *err)
{
    uint64_t n_free, n_needed = j->scout.header_bytes + j->vault.header_bytes + j->s->n_bytes;
    TRY(file_free_bytes(j->s->dir, &n_free, err));
    if (n_free < n_needed) {
        return err_set(err, SMOE_IO,
                       "%s has %.1f GB free, but the two files of %s need %.1f GB; free some, "
                       "choose another --dir, or fewer --layers",
                       j->s->dir, (double)n_free / 1e9, j->s->shape.name, (double)n_needed / 1e9);
    }
    return SMOE_OK;
}

static smoe_status begin(job *j, smoe_err *err)
{
    const synthetic *s = j->s;
    j->record = mem_calloc(1, (size_t)s->sizes.record_bytes); /* padding stays zero */
    if (!j->record) {
        return err_nomem(err, "a record", s->sizes.record_bytes);
    }
    TRY(declare_scout(j, err));
    TRY(declare_vault(j, err));
    if (mkdir(s->dir, 0777) != 0 && errno != EEXIST) {
        return err_errno(err, SMOE_IO, "the directory %s cannot be created", s->dir);
    }
    TRY(safetensors_writer_begin(&j->scout, s->scout_path, VAULT_MATRIX_ALIGN, err));
    TRY(safetensors_writer_begin(&j->vault, s->vault_path, VAULT_ALIGN, err));
    return check_free(j, err);
}

static smoe_status finish(job *j, smoe_err *err)
{
    TRY(safetensors_writer_seal(&j->vault, err));
    TRY(safetensors_writer_seal(&j->scout, err));
    TRY(safetensors_writer_finish(&j->vault, err));
    TRY(safetensors_writer_finish(&j->scout, err));
    j->s->is_written = true;
    return SMOE_OK;
}

smoe_status synthetic_write(synthetic *s, pool *threads, const synthetic_events *events,
                            smoe_err *err)
{
    smoe_status status;
    job *j = mem_calloc(1, sizeof *j);
    if (!j) {
        return err_nomem(err, "a synthetic model", sizeof *j);
    }
    j->s = s;
    j->events = events;
    buf_init(&j->text, MAX_TEXT_BYTES);
    safetensors_writer_init(&j->scout);
    safetensors_writer_init(&j->vault);
    weight_pools_init(&j->pools, threads);
    CHECK(begin(j, err));
    CHECK(write_scout(j, err));
    CHECK(write_vault(j, err));
    CHECK(finish(j, err));
out:
    safetensors_writer_fini(&j->scout);
    safetensors_writer_fini(&j->vault);
    weight_pools_fini(&j->pools);
    buf_fini(&j->text);
    mem_free(j->record);
    mem_free(j);
    return status;
}
