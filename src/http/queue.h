/* queue.h: requests that wait for the engine, and which one is next.
 *
 * The engine keeps one timeline: a request that continues it costs its new tokens only, any other
 * one a prefill and, later, another one for the conversation it displaced. So the next request is
 * the one that shares the longest prefix with the timeline, the oldest of equals, and one for the
 * loaded model before any other. A request is overtaken QUEUE_MAX_OVERTAKEN times at most. */
#ifndef HTTP_QUEUE_H
#define HTTP_QUEUE_H

#include "http/job.h"

enum { QUEUE_MAX_OVERTAKEN = 4 };

typedef struct queue {
    pthread_mutex_t lock;
    pthread_cond_t more;
    job *first; /* in order of arrival; the queue holds a reference to each */
    size_t n, max;
    bool closed; /* takes no more */
    bool ended;  /* gives no more */
} queue;

void queue_init(queue *q, size_t max);
void queue_fini(queue *q);
enum queue_answer { QUEUE_TAKEN, QUEUE_FULL, QUEUE_CLOSED };
enum queue_answer queue_put(queue *q, job *j);
/* False: it is not there, the worker has it. */
bool queue_remove(queue *q, job *j);
size_t queue_length(queue *q);
bool queue_is_over(queue *q); /* closed and empty: queue_take would return NULL */
/* Waits for a request and gives the caller its reference; NULL once the queue is closed and empty,
 * or ended. */
job *queue_take(queue *q, const http_model *model, const smoe_ids *timeline);
void queue_close(queue *q);
void queue_end(queue *q); /* what still waits gets an error */

/* The choice among first, first->next, ... (not NULL). */
job *queue_choose(job *first, const http_model *model, const smoe_ids *timeline);

#endif
