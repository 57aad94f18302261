/* matmul.c: see matmul.h. */
#include "model/matmul.h"

/* Fewer weights than this are not worth a second thread. */
enum { MATMUL_GRAIN_WEIGHTS = 32 * 1024 };

unsigned matrix_takes(const matrix *m)
{
    int scale_elems = m->in_panels ? panel_act_scale(m->type) : 0;
    return scale_elems == 0    ? TAKES_FLOATS
           : scale_elems == 32 ? TAKES_SCALES_OF_32
                               : TAKES_SCALES_OF_256;
}

struct quantise_job {
    const compute *c;
    const activations *a;
};

static void quantise_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const struct quantise_job *job = ctx;
    const activations *a = job->a;
    int scale_elems = a->takers & TAKES_SCALES_OF_256 ? 256 : 32;
    (void)thread;
    for (size_t t = begin; t < end; t++) {
        job->c->panel->act_quantize(a->x + t * a->cols, (int64_t)a->cols, scale_elems,
                                    a->act + t * (size_t)act_n_blocks((int64_t)a->cols));
    }
}

void activations_set(const compute *c, activations *a, unsigned takers, const float *x, uint32_t n,
                     uint64_t cols)
{
    a->x = x;
    a->n = n;
    a->cols = cols;
    a->takers = takers;
    if (takers & ~(unsigned)TAKES_FLOATS) {
        struct quantise_job job = {c, a};
        pool_for(c->pool, n, (size_t)(MATMUL_GRAIN_WEIGHTS / cols) + 1, quantise_range, &job);
    }
}

void matmul_stripe(const compute *c, const activations *a, const matrix *w, uint64_t row0,
                   uint64_t n_rows, float *y, uint64_t y_stride)
{
    if (!w->in_panels) {
        c->k->matmul_plain(w->type, w->data + row0 * w->row_bytes, (int64_t)n_rows,
                           (int64_t)w->cols, a->x, (int64_t)w->cols, a->n, y, (int64_t)y_stride);
    } else {
        panel_x x = {a->act, act_n_blocks((int64_t)w->cols), a->n};
        c->panel->matmul(w->type, w->data + row0 * w->row_bytes, (int64_t)n_rows,
                         (int64_t)w->cols, x, y, (int64_t)y_stride);
    }
}

struct matmul_job {
    const compute *c;
    const activations *a;
    const matmul_part *parts;
    uint32_t n_parts;
};

static uint64_t n_panels(const matrix *w)
{
    return (w->rows + PANEL_ROWS - 1) / PANEL_ROWS;
}

/* Panels [begin, end) of one part. */
static void run_panels(const struct matmul_job *job, const matmul_part *part, uint64_t begin,
                       uint64_t end)
{
    const matrix *w = part->w;
    uint64_t row0 = begin * PANEL_ROWS;
    uint64_t row1 = end * PANEL_ROWS < w->rows ? end * PANEL_ROWS : w->rows;
    matmul_stripe(job->c, job->a, w, row0, row1 - row0, part->y + row0, w->rows);
    for (uint32_t j = 0; part->bias && j < job->a->n; j++) {
        for (uint64_t r = row0; r < row1; r++) {
            part->y[j * w->rows + r] += part->bias[r];
        }
    }
}

static void matmul_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const struct matmul_job *job = ctx;
    (void)thread;
    uint64_t first = 0; /* of the part, among the panels of all parts */
    for (uint32_t i = 0; i < job->n_parts; i++) {
        uint64_t n = n_panels(job->parts[i].w);
        uint64_t from = begin > first ? begin - first : 0;
        uint64_t to = end < first + n ? end - first : n;
        if (end > first && from < to) {
            run_panels(job, &job->parts[i], from, to);
        }
        first += n;
    }
}

void matmul(const compute *c, const activations *a, const matmul_part *parts, uint32_t n_parts)
{
    struct matmul_job job = {c, a, parts, n_parts};
    uint64_t total = 0, work = PANEL_ROWS * a->cols * a->n;
    for (uint32_t i = 0; i < n_parts; i++) {
        total += n_panels(parts[i].w);
    }
    pool_for(c->pool, (size_t)total, (size_t)(MATMUL_GRAIN_WEIGHTS / work) + 1, matmul_range, &job);
}
