/* aio_threads.c: the mechanism of every system: up to `depth` threads, each of which reads one
 * record at a time with pread.
 *
 * One mutex guards both lists: `todo` (owner -> threads) and `finished` (threads -> owner). At most
 * depth reads are in flight, so neither outgrows depth. No thread holds the lock while it reads. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/mem.h"
#include "cache/aio_backend.h"

struct threads {
    aio_backend base; /* first: a pointer to it is a pointer to this */
    int fd;
    uint32_t depth;
    pthread_mutex_t lock;
    pthread_cond_t work;    /* todo grew, or stop */
    pthread_cond_t arrived; /* finished grew */
    bool stop;
    aio_op *todo;           /* [depth]: a ring */
    uint32_t todo_first, n_todo;
    aio_result *finished;   /* [depth]: a ring */
    uint32_t finished_first, n_finished;
    pthread_t *threads;     /* [depth] */
    uint32_t n_started;
};

static aio_result read_op(int fd, const aio_op *op)
{
    ssize_t n = pread(fd, op->data, op->len, (off_t)op->offset);
    return (aio_result){op->place, n < 0 ? -errno : (int32_t)n};
}

static void *worker(void *arg)
{
    struct threads *t = arg;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (t->n_todo == 0 && !t->stop) {
            pthread_cond_wait(&t->work, &t->lock);
        }
        if (t->stop) {
            break;
        }
        aio_op op = t->todo[t->todo_first];
        t->todo_first = (t->todo_first + 1) % t->depth;
        t->n_todo--;
        pthread_mutex_unlock(&t->lock);
        aio_result result = read_op(t->fd, &op);
        pthread_mutex_lock(&t->lock);
        t->finished[(t->finished_first + t->n_finished++) % t->depth] = result;
        pthread_cond_signal(&t->arrived);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static void start(aio_backend *b, const aio_op *ops, uint32_t n)
{
    struct threads *t = (struct threads *)b;
    pthread_mutex_lock(&t->lock);
    for (uint32_t i = 0; i < n; i++) {
        t->todo[(t->todo_first + t->n_todo++) % t->depth] = ops[i];
        pthread_cond_signal(&t->work);
    }
    pthread_mutex_unlock(&t->lock);
}

static uint32_t finish(aio_backend *b, aio_result *results, uint32_t max, bool wait)
{
    struct threads *t = (struct threads *)b;
    uint32_t n = 0;
    pthread_mutex_lock(&t->lock);
    while (wait && t->n_finished == 0) {
        pthread_cond_wait(&t->arrived, &t->lock);
    }
    for (; n < max && t->n_finished > 0; n++) {
        results[n] = t->finished[t->finished_first];
        t->finished_first = (t->finished_first + 1) % t->depth;
        t->n_finished--;
    }
    pthread_mutex_unlock(&t->lock);
    return n;
}

static void close_threads(aio_backend *b)
{
    struct threads *t = (struct threads *)b;
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_broadcast(&t->work);
    pthread_mutex_unlock(&t->lock);
    for (uint32_t i = 0; i < t->n_started; i++) {
        pthread_join(t->threads[i], NULL);
    }
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->work);
    pthread_cond_destroy(&t->arrived);
    mem_free(t->todo);
    mem_free(t->finished);
    mem_free(t->threads);
    mem_free(t);
}

/* As many as the system grants, up to depth: a limit on processes costs speed only. Signals belong
 * to the main thread: these start with all of them blocked. */
static smoe_status start_threads(struct threads *t, smoe_err *err)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (t->n_started < t->depth &&
           pthread_create(&t->threads[t->n_started], NULL, worker, t) == 0) {
        t->n_started++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return t->n_started > 0 ? SMOE_OK
                            : err_set(err, SMOE_NOMEM,
                                      "the system refused to start a thread that reads the vault");
}

smoe_status aio_threads_open(const aio_backend_params *p, aio_backend **out, smoe_err *err)
{
    struct threads *t = mem_calloc(1, sizeof *t);
    if (!t) {
        return err_nomem(err, "the reading threads", sizeof *t);
    }
    t->base = (aio_backend){.start = start, .finish = finish, .close = close_threads};
    t->fd = p->fd;
    t->depth = p->depth;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->work, NULL);
    pthread_cond_init(&t->arrived, NULL);
    t->todo = mem_calloc(t->depth, sizeof *t->todo);
    t->finished = mem_calloc(t->depth, sizeof *t->finished);
    t->threads = mem_calloc(t->depth, sizeof *t->threads);
    smoe_status status =
        t->todo && t->finished && t->threads
            ? start_threads(t, err)
            : err_nomem(err, "the reading threads", t->depth * sizeof *t->threads);
    if (status != SMOE_OK) {
        close_threads(&t->base);
        return status;
    }
    *out = &t->base;
    return SMOE_OK;
}
