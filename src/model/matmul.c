/* matmul.c: see matmul.h. */
#include "model/matmul.h"

/* fewer weights than this are not worth a second thread */
enum { MATMUL_GRAIN_WEIGHTS = 16 * 1024 };

struct matmul_job {
    const compute *c;
    const matrix *w;
    const float *bias, *x;
    uint32_t n;
    float *y;
};

static void matmul_rows(void *ctx, size_t begin, size_t end, uint32_t thread)
{
    const struct matmul_job *job = ctx;
    const matrix *w = job->w;
    const kernels *k = job->c->k;
    int64_t cols = (int64_t)w->cols;
    for (size_t r = begin; r < end; r++) {
        const uint8_t *row = w->data + r * w->row_bytes;
        if (job->n == 1) {
            job->y[r] = k->vec_dot(w->type, row, job->x, cols);
        } else {
            const float *row_f32 = (const float *)row;
            if (w->type != DTYPE_F32) {
                float *scratch = job->c->row_scratch + thread * job->c->row_scratch_len;
                k->dequantize_row(w->type, row, scratch, cols);
                row_f32 = scratch;
            }
            k->vec_dot_f32_batch(row_f32, job->x, cols, job->n, cols, job->y + r,
                                 (int64_t)w->rows);
        }
        for (uint32_t j = 0; job->bias && j < job->n; j++) {
            job->y[j * w->rows + r] += job->bias[r];
        }
    }
}

void matmul(const compute *c, const matrix *w, const float *bias, const float *x, uint32_t n,
            float *y)
{
    struct matmul_job job = {c, w, bias, x, n, y};
    uint64_t row_work = w->cols * n;
    size_t grain = (size_t)(MATMUL_GRAIN_WEIGHTS / (row_work ? row_work : 1)) + 1;
    pool_for(c->pool, (size_t)w->rows, grain, matmul_rows, &job);
}
