/* worker.h: the one thread that owns the engine: takes requests from the queue, one at a time, and
 * puts what the engine says into them. Starts the engine, switches its model, replaces it when it
 * dies, and goes back to the model from before when another does not load. It never waits for a
 * client. */
#ifndef HTTP_WORKER_H
#define HTTP_WORKER_H

#include "http/metrics.h"
#include "http/queue.h"
#include "smoe/protocol.h"

enum worker_state { WORKER_LOADING, WORKER_READY, WORKER_DOWN };

typedef struct worker {
    const http_options *options;
    queue *queue;
    metrics *metrics;
    pthread_t thread;
    smoe_client *client;      /* NULL before the first start */
    const http_model *loaded; /* what the client runs, or tries to */
    const http_model *proven; /* the last that has loaded; NULL: none yet */
    bool up;                  /* it has loaded and is not known to be dead */
    bool is_awaited;          /* a request that was taken waits for the load */
    smoe_ids timeline;        /* what the engine holds, as far as we know */
    atomic_size_t n_timeline; /* its length, for anybody */
    atomic_int state;         /* enum worker_state, for /health */
    _Atomic(const http_model *) model; /* the one that answers, or will; for anybody */
    atomic_bool ending;       /* whatever runs is to be cancelled */
    atomic_bool finished;     /* the thread has nothing more to do */
} worker;

/* Starts the thread, which loads options->models[0]. */
smoe_status worker_start(worker *w, const http_options *options, queue *q, metrics *m,
                         smoe_err *err);
/* The queue was closed: waits until what it held is answered, then ends the engine. */
void worker_join(worker *w);
void worker_cancel_all(worker *w); /* also what runs; worker_join then returns soon */

#endif
