/* ring.c: what the ring costs when everything is in memory: the same tokens decoded over a ring
 * with one slot less than the vault has records, and over plain pointers, in turns.
 *
 * Both engines live in one process and decode the same continuation again and again. Rounds in
 * which the ring read anything do not count. The order within a round changes from round to round,
 * and the median of the ratios is what the ring's book-keeping costs.
 *
 * usage: ring --vault FILE --scout FILE [--threads N] [--gen N] [--rounds N] */
#include <stdio.h>
#include <stdlib.h>

#include "base/opts.h"
#include "smoe/engine.h"

enum { N_PROMPT = 16, MAX_ROUNDS = 999 };
enum { RING, POINTERS, N_SIDES };

typedef struct side {
    smoe_engine *engine;
    smoe_session *session;
} side;

static smoe_status open_side(side *s, smoe_engine_params params, smoe_err *err)
{
    const int32_t no_end = 0;
    const smoe_session_params session = {.eos_ids = &no_end, .n_eos_ids = 0};
    TRY(smoe_engine_open(&params, &s->engine, err));
    return smoe_session_new(s->engine, &session, &s->session, err);
}

static void close_side(side *s)
{
    smoe_session_free(s->session);
    smoe_engine_close(s->engine);
}

static smoe_status decode(side *s, uint32_t n_gen, smoe_result *result, smoe_err *err)
{
    int32_t ids[N_PROMPT];
    for (int i = 0; i < N_PROMPT; i++) {
        ids[i] = 100 + i;
    }
    const smoe_request request = {.ids = ids, .n_ids = N_PROMPT, .max_tokens = n_gen,
                                  .sampling = {0, 1, 1, 1}};
    return smoe_session_generate(s->session, &request, NULL, result, err);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static smoe_status measure(side sides[N_SIDES], uint32_t n_gen, uint32_t n_rounds, smoe_err *err)
{
    static double ratios[MAX_ROUNDS];
    uint32_t n = 0;
    smoe_result r[N_SIDES];
    for (uint32_t round = 0; round < n_rounds + 2; round++) {
        for (uint32_t i = 0; i < N_SIDES; i++) {
            uint32_t which = (i + round) % N_SIDES;
            TRY(decode(&sides[which], n_gen, &r[which], err));
        }
        if (round >= 2 && r[RING].bytes_read == 0) { /* the first two fill the ring */
            ratios[n++] = (double)r[RING].decode_ns / (double)r[POINTERS].decode_ns;
        }
    }
    if (n == 0) {
        return err_set(err, SMOE_RANGE, "the ring read something in each of the %u rounds",
                       n_rounds);
    }
    qsort(ratios, n, sizeof *ratios, by_value);
    printf("time over the ring / over pointers, %u rounds of %u tokens: median %.4f, quartiles "
           "%.4f and %.4f\n", n, n_gen, ratios[n / 2], ratios[n / 4], ratios[3 * n / 4]);
    return SMOE_OK;
}

static smoe_status run(int argc, char **argv, side sides[N_SIDES], smoe_err *err)
{
    smoe_engine_params params = {.n_ctx = 512};
    uint32_t n_gen = 24, n_rounds = 99;
    const char *none[1];
    size_t n_none;
    const opt table[] = {
        {"vault", OPT_TEXT, &params.vault_path, 0, 0, "FILE", "", NULL},
        {"scout", OPT_TEXT, &params.scout_path, 0, 0, "FILE", "", NULL},
        {"threads", OPT_U32, &params.n_threads, 1, 1024, "N", "", NULL},
        {"gen", OPT_U32, &n_gen, 1, 400, "N", "", NULL},
        {"rounds", OPT_U32, &n_rounds, 1, MAX_ROUNDS, "N", "", NULL},
        {NULL, OPT_FLAG, NULL, 0, 0, NULL, NULL, NULL},
    };
    TRY(opts_parse(table, argc, argv, 1, none, 0, &n_none, err));
    if (!params.vault_path || !params.scout_path) {
        return err_set(err, SMOE_USAGE, "--vault FILE and --scout FILE are needed");
    }
    TRY(open_side(&sides[POINTERS], params, err));
    const smoe_engine_info *info = smoe_engine_get_info(sides[POINTERS].engine);
    if (info->n_ring < info->n_records || info->n_records < 2) {
        return err_set(err, SMOE_RANGE, "this vault does not fit into memory");
    }
    params.n_ring = (uint32_t)info->n_records - 1;
    TRY(open_side(&sides[RING], params, err));
    return measure(sides, n_gen, n_rounds, err);
}

int main(int argc, char **argv)
{
    side sides[N_SIDES] = {0};
    smoe_err err;
    smoe_status status = run(argc, argv, sides, &err);
    close_side(&sides[RING]);
    close_side(&sides[POINTERS]);
    if (status != SMOE_OK) {
        fprintf(stderr, "bench-ring: %s\n", err.text);
    }
    return status != SMOE_OK;
}
