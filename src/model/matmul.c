/* matmul.c: see matmul.h. */
#include "model/matmul.h"

/* Fewer weights than this are not worth a second thread. */
enum { MATMUL_GRAIN_WEIGHTS = 32 * 1024 };

uint64_t matmul_scratch_len(uint32_t n_batch)
{
    return 2ull * n_batch * MATMUL_STRIPE_ROWS;
}

struct quantise_job {
    const compute *c;
    activations *a;
};

static void quantise_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const struct quantise_job *job = ctx;
    activations *a = job->a;
    int64_t cols = (int64_t)a->cols;
    (void)thread;
    for (size_t t = begin; t < end; t++) {
        const float *x = a->x + t * a->cols;
        act_block *act = a->act + t * activations_blocks(a);
        if (a->fine) {
            job->c->panel->act_quantize_fine(x, cols, act, act + act_n_blocks(cols));
        } else {
            job->c->panel->act_quantize(x, cols, act);
        }
    }
}

void activations_set(const compute *c, activations *a, const matrix *like, const float *x,
                     uint32_t n, bool fine)
{
    a->x = x;
    a->n = n;
    a->cols = like->cols;
    a->quantised = like->in_panels;
    a->fine = fine && like->in_panels;
    if (a->quantised) {
        struct quantise_job job = {c, a};
        pool_for(c->pool, n, (size_t)(MATMUL_GRAIN_WEIGHTS / a->cols) + 1, quantise_range, &job);
    }
}

/* The two halves of a fine activation are two vectors to the kernel; their results are added. */
static void fine_stripe(const compute *c, const activations *a, const matrix *w, uint64_t row0,
                        uint64_t n_rows, float *y, uint64_t y_stride, uint32_t thread)
{
    int64_t cols = (int64_t)w->cols;
    float *halves = c->thread_scratch + thread * c->thread_scratch_len;
    panel_x x = {a->act, act_n_blocks(cols), 2 * (int64_t)a->n};
    for (uint64_t done = 0; done < n_rows; done += MATMUL_STRIPE_ROWS) {
        uint64_t n = n_rows - done < MATMUL_STRIPE_ROWS ? n_rows - done : MATMUL_STRIPE_ROWS;
        c->panel->matmul(w->type, w->data + (row0 + done) * w->row_bytes, (int64_t)n, cols, x,
                         halves, MATMUL_STRIPE_ROWS);
        for (uint32_t j = 0; j < a->n; j++) {
            const float *hi = halves + 2ull * j * MATMUL_STRIPE_ROWS;
            const float *lo = hi + MATMUL_STRIPE_ROWS;
            for (uint64_t r = 0; r < n; r++) {
                y[j * y_stride + done + r] = hi[r] + lo[r];
            }
        }
    }
}

void matmul_stripe(const compute *c, const activations *a, const matrix *w, uint64_t row0,
                   uint64_t n_rows, float *y, uint64_t y_stride, uint32_t thread)
{
    if (!w->in_panels) {
        c->k->matmul_plain(w->type, w->data + row0 * w->row_bytes, (int64_t)n_rows,
                           (int64_t)w->cols, a->x, (int64_t)w->cols, a->n, y, (int64_t)y_stride);
    } else if (a->fine) {
        fine_stripe(c, a, w, row0, n_rows, y, y_stride, thread);
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
                       uint64_t end, uint32_t thread)
{
    const matrix *w = part->w;
    uint64_t row0 = begin * PANEL_ROWS;
    uint64_t row1 = end * PANEL_ROWS < w->rows ? end * PANEL_ROWS : w->rows;
    matmul_stripe(job->c, job->a, w, row0, row1 - row0, part->y + row0, w->rows, thread);
    for (uint32_t j = 0; part->bias && j < job->a->n; j++) {
        for (uint64_t r = row0; r < row1; r++) {
            part->y[j * w->rows + r] += part->bias[r];
        }
    }
}

static void matmul_range(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const struct matmul_job *job = ctx;
    uint64_t first = 0; /* of the part, among the panels of all parts */
    for (uint32_t i = 0; i < job->n_parts; i++) {
        uint64_t n = n_panels(job->parts[i].w);
        uint64_t from = begin > first ? begin - first : 0;
        uint64_t to = end < first + n ? end - first : n;
        if (end > first && from < to) {
            run_panels(job, &job->parts[i], from, to, thread);
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
