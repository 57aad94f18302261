/* convert.c: streams a planned checkpoint into its two files, matrix by matrix
 * (convert_matrix.h). Memory: what one matrix takes there, and one record.
 *
 * Both files stay under temporary names until both are complete, then are renamed one after the
 * other. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/cpu.h"
#include "base/mem.h"
#include "formats/safetensors_write.h"
#include "formats/vault_write.h"
#include "json/json_write.h"
#include "shatter/convert_matrix.h"

enum { MAX_META_BYTES = 64 << 20 };

typedef struct job {
    shatter_plan *plan;
    const shatter_events *events;
    pool *pool;
    converter converter;
    safetensors_writer scout, vault;
    uint8_t *record;
    buf sums;                 /* hex checksums of the file being written */
    checksum id_low, id_high; /* the lineage: two chains over the same facts */
    uint64_t done_bytes;
} job;

/* --- lineage ---------------------------------------------------------------------------------- */

static void lineage_add(job *j, const void *data, size_t n_bytes)
{
    checksum_add(&j->id_low, data, n_bytes);
    checksum_add(&j->id_high, data, n_bytes);
}

/* The lineage says "the same checkpoint": its config, its tokenizer, and name, type, shape and
 * bytes of every tensor used; not the types chosen: a vault of one type fits a scout of another. */
static void lineage_begin(job *j)
{
    static const int identity[] = {FILE_CONFIG, FILE_TOKENIZER};
    checksum_init(&j->id_low);
    checksum_init(&j->id_high);
    checksum_add(&j->id_high, "smoe", 4); /* sets the second chain apart */
    for (int i = 0; i < 2; i++) {
        char head[64];
        const buf *text = &j->plan->files[identity[i]].text;
        int n = snprintf(head, sizeof head, "%s %zu\n", j->plan->files[identity[i]].name,
                         text->len);
        lineage_add(j, head, (size_t)n);
        lineage_add(j, text->data, text->len);
    }
}

static void lineage_tensor(job *j, const matrix_source *m, uint64_t sum)
{
    char line[192];
    int n = snprintf(line, sizeof line, "%s %s %llu %llu %d %016llx\n", m->name,
                     dtype_get(m->type)->name, (unsigned long long)m->rows,
                     (unsigned long long)m->cols, m->transposed, (unsigned long long)sum);
    lineage_add(j, line, (size_t)n);
}

/* --- one matrix ------------------------------------------------------------------------------- */

static smoe_status report(job *j, uint64_t n_bytes, smoe_err *err)
{
    const shatter_events *e = j->events;
    j->done_bytes += n_bytes;
    if (e != NULL && e->progress != NULL) {
        e->progress(e->ctx, j->done_bytes, j->plan->source_bytes);
    }
    if (e != NULL && e->cancelled != NULL && e->cancelled(e->ctx)) {
        return err_set(err, SMOE_CANCELLED,
                       "interrupted; nothing was written under the final names");
    }
    return SMOE_OK;
}

/* Converts a matrix into dst; when dst is NULL, appends it to the scout and lists its checksum. */
static smoe_status convert_matrix(job *j, const matrix_source *m, dtype type, uint8_t *dst,
                                  smoe_err *err)
{
    conversion v;
    checksum sum;
    char hex[CHECKSUM_HEX];
    checksum_init(&sum);
    TRY(conversion_begin(&v, &j->converter, m, type, err));
    TRY(report(j, v.n_read, err));
    while (v.n_rows_done < m->rows) {
        TRY(conversion_next(&v, dst, err));
        if (dst != NULL) {
            dst += v.n_out;
        } else {
            checksum_add(&sum, v.out, (size_t)v.n_out);
            TRY(safetensors_writer_append(&j->scout, v.out, v.n_out, err));
        }
        TRY(report(j, v.n_read, err));
    }
    lineage_tensor(j, m, checksum_end(&v.source_sum));
    if (dst != NULL) {
        return SMOE_OK;
    }
    checksum_to_hex(checksum_end(&sum), hex);
    return buf_append(&j->sums, hex, sizeof hex, err);
}

/* --- headers ---------------------------------------------------------------------------------- */

static smoe_status ids_meta(job *j, const char *key, const smoe_ids *ids, smoe_err *err)
{
    json_writer w;
    buf_clear(&j->sums);
    jw_init(&w, &j->sums);
    jw_begin_array(&w);
    for (size_t i = 0; i < ids->len; i++) {
        jw_int(&w, ids->data[i]);
    }
    jw_end_array(&w);
    TRY(jw_finish(&w, err));
    return safetensors_writer_meta(&j->scout, key, buf_slice(&j->sums), err);
}

static smoe_status declare_tensors(job *j, smoe_err *err)
{
    json_writer types;
    buf_clear(&j->sums);
    jw_init(&types, &j->sums);
    jw_begin_object(&types);
    for (size_t i = 0; i < j->plan->n_dense; i++) {
        const dense_plan *d = &j->plan->dense[i];
        TRY(scout_write_tensor(&j->scout, &types, &d->tensor, d->type, err));
    }
    jw_end_object(&types);
    TRY(jw_finish(&types, err));
    return safetensors_writer_meta(&j->scout, "smoe.types", buf_slice(&j->sums), err);
}

static smoe_status declare_scout(job *j, smoe_err *err)
{
    const shatter_plan *p = j->plan;
    safetensors_writer *w = &j->scout;
    size_t n_files = 0;
    TRY(ids_meta(j, "smoe.eos_ids", &p->eos_ids, err));
    TRY(ids_meta(j, "smoe.penalty_exempt_ids", &p->penalty_exempt_ids, err));
    TRY(declare_tensors(j, err));
    for (int i = 0; i < N_FILES; i++) {
        char name[64];
        uint64_t len = p->files[i].text.len;
        snprintf(name, sizeof name, "file/%s", p->files[i].name);
        if (p->files[i].present) {
            TRY(safetensors_writer_add(w, slice_from(name), "U8", &len, 1, len, err));
            n_files++;
        }
    }
    buf_clear(&j->sums);
    return vault_write_common(w, "scout", p->config.arch, NULL, p->n_dense + n_files, err);
}

static smoe_status declare_vault(job *j, smoe_err *err)
{
    const shatter_plan *p = j->plan;
    TRY(vault_write_records(&j->vault, &p->config, &p->layout[PART_GATE], &p->layout[PART_UP],
                            &p->layout[PART_DOWN], p->record_bytes, err));
    return vault_write_common(&j->vault, "vault", p->config.arch, NULL,
                              shatter_plan_summary(p).n_records, err);
}

/* --- the two files ---------------------------------------------------------------------------- */

static smoe_status write_scout(job *j, smoe_err *err)
{
    const shatter_plan *p = j->plan;
    for (size_t i = 0; i < p->n_dense; i++) {
        TRY(convert_matrix(j, &p->dense[i].source, p->dense[i].type, NULL, err));
    }
    for (int i = 0; i < N_FILES; i++) {
        const buf *text = &p->files[i].text;
        checksum sum;
        char hex[CHECKSUM_HEX];
        if (!p->files[i].present) {
            continue;
        }
        checksum_init(&sum);
        checksum_add(&sum, text->data, text->len);
        checksum_to_hex(checksum_end(&sum), hex);
        TRY(safetensors_writer_append(&j->scout, text->data, text->len, err));
        TRY(buf_append(&j->sums, hex, sizeof hex, err));
    }
    TRY(safetensors_writer_meta(&j->scout, "smoe.checksums", buf_slice(&j->sums), err));
    buf_clear(&j->sums);
    return SMOE_OK;
}

static smoe_status write_record(job *j, uint32_t layer, uint32_t expert, smoe_err *err)
{
    matrix_source m;
    char hex[CHECKSUM_HEX];
    shatter_plan *p = j->plan;
    for (int part = 0; part < N_PARTS; part++) {
        TRY(plan_expert_source(p, layer, expert, (enum expert_part)part, &m, err));
        TRY(convert_matrix(j, &m, p->layout[part].type, j->record + p->layout[part].offset, err));
    }
    checksum_to_hex(hash_bytes(j->record, (size_t)p->record_bytes), hex);
    TRY(buf_append(&j->sums, hex, sizeof hex, err));
    return safetensors_writer_append(&j->vault, j->record, p->record_bytes, err);
}

static smoe_status write_vault(job *j, smoe_err *err)
{
    const model_config *c = &j->plan->config;
    for (uint32_t layer = 0; layer < c->n_layer; layer++) {
        for (uint32_t expert = 0; c->is_sparse[layer] && expert < c->n_expert; expert++) {
            TRY(write_record(j, layer, expert, err));
        }
    }
    return safetensors_writer_meta(&j->vault, "smoe.checksums", buf_slice(&j->sums), err);
}

static smoe_status finish(job *j, smoe_err *err)
{
    char lineage[2 * CHECKSUM_HEX];
    checksum_to_hex(checksum_end(&j->id_low), lineage);
    checksum_to_hex(checksum_end(&j->id_high), lineage + CHECKSUM_HEX);
    TRY(safetensors_writer_meta(&j->scout, "smoe.lineage", slice_of(lineage, sizeof lineage), err));
    TRY(safetensors_writer_meta(&j->vault, "smoe.lineage", slice_of(lineage, sizeof lineage), err));
    TRY(safetensors_writer_seal(&j->vault, err));
    TRY(safetensors_writer_seal(&j->scout, err));
    TRY(safetensors_writer_finish(&j->vault, err));
    return safetensors_writer_finish(&j->scout, err);
}

/* mkdir -p */
static smoe_status make_dir(const char *path, smoe_err *err)
{
    char *part = mem_strdup(path);
    smoe_status status = SMOE_OK;
    if (part == NULL) {
        return err_nomem(err, "a path", strlen(path));
    }
    for (char *p = part + 1; status == SMOE_OK; p++) {
        char c = *p;
        if (c != '/' && c != '\0') {
            continue;
        }
        *p = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST && !file_is_dir(part)) {
            status = err_errno(err, SMOE_IO, "the output directory %s cannot be created", part);
        }
        *p = c;
        if (c == '\0') {
            break;
        }
    }
    mem_free(part);
    if (status == SMOE_OK && !file_is_dir(path)) {
        status = err_set(err, SMOE_IO, "the output directory %s is not a directory", path);
    }
    return status;
}

/* Asked after the files were created, because that removes what a killed run left behind. */
static smoe_status check_free(const job *j, smoe_err *err)
{
    uint64_t n_free, n_needed = j->scout.header_bytes + j->scout.data_bytes +
                                j->vault.header_bytes + j->vault.data_bytes;
    char a[32], b[32];
    TRY(file_free_bytes(j->plan->out_dir, &n_free, err));
    if (n_free < n_needed) {
        return err_set(err, SMOE_IO,
                       "%s has %s free, but the two files need %s (%llu bytes more); free "
                       "some, choose another directory with -o, or a smaller type with --experts",
                       j->plan->out_dir, shatter_size_text(n_free, a),
                       shatter_size_text(n_needed, b), (unsigned long long)(n_needed - n_free));
    }
    return SMOE_OK;
}

static smoe_status begin(job *j, smoe_err *err)
{
    shatter_plan *p = j->plan;
    TRY(pool_new(p->n_threads != 0 ? p->n_threads : cpu_n_cores(), &j->pool, err));
    j->converter = (converter){.source = &p->source, .kernels = kernels_get(NULL), .pool = j->pool};
    j->record = mem_calloc(1, (size_t)p->record_bytes); /* padding stays zero */
    if (j->record == NULL) {
        return err_nomem(err, "a record", p->record_bytes);
    }
    TRY(declare_scout(j, err));
    TRY(declare_vault(j, err));
    TRY(make_dir(p->out_dir, err));
    TRY(safetensors_writer_begin(&j->scout, p->scout_path, VAULT_MATRIX_ALIGN, err));
    TRY(safetensors_writer_begin(&j->vault, p->vault_path, VAULT_ALIGN, err));
    return check_free(j, err);
}

smoe_status shatter_convert(shatter_plan *plan, const shatter_events *events, smoe_err *err)
{
    smoe_status status;
    job *j = mem_calloc(1, sizeof *j);
    if (j == NULL) {
        return err_nomem(err, "a conversion", sizeof *j);
    }
    j->plan = plan;
    j->events = events;
    buf_init(&j->sums, MAX_META_BYTES);
    safetensors_writer_init(&j->scout);
    safetensors_writer_init(&j->vault);
    lineage_begin(j);
    CHECK(begin(j, err));
    CHECK(report(j, 0, err));
    CHECK(write_scout(j, err));
    CHECK(write_vault(j, err));
    CHECK(finish(j, err));
out:
    safetensors_writer_fini(&j->scout);
    safetensors_writer_fini(&j->vault);
    pool_free(j->pool);
    buf_fini(&j->sums);
    converter_fini(&j->converter);
    mem_free(j->record);
    mem_free(j);
    return status;
}
