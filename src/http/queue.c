/* queue.c: see queue.h. */
#include "http/queue.h"

void queue_init(queue *q, size_t max)
{
    *q = (queue){.max = max};
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->more, NULL);
}

void queue_fini(queue *q)
{
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->more);
}

enum queue_answer queue_put(queue *q, job *j)
{
    enum queue_answer answer = QUEUE_TAKEN;
    pthread_mutex_lock(&q->lock);
    if (q->closed) {
        answer = QUEUE_CLOSED;
    } else if (q->n >= q->max) {
        answer = QUEUE_FULL;
    } else {
        job **last = &q->first;
        while (*last != NULL) {
            last = &(*last)->next;
        }
        *last = j;
        q->n++;
        job_hold(j);
        pthread_cond_signal(&q->more);
    }
    pthread_mutex_unlock(&q->lock);
    return answer;
}

/* The lock is held. */
static bool unlink_job(queue *q, job *j)
{
    for (job **p = &q->first; *p != NULL; p = &(*p)->next) {
        if (*p == j) {
            *p = j->next;
            j->next = NULL;
            q->n--;
            return true;
        }
    }
    return false;
}

bool queue_remove(queue *q, job *j)
{
    pthread_mutex_lock(&q->lock);
    bool found = unlink_job(q, j);
    pthread_mutex_unlock(&q->lock);
    if (found) {
        job_release(j);
    }
    return found;
}

size_t queue_length(queue *q)
{
    pthread_mutex_lock(&q->lock);
    size_t n = q->n;
    pthread_mutex_unlock(&q->lock);
    return n;
}

bool queue_is_over(queue *q)
{
    pthread_mutex_lock(&q->lock);
    bool over = q->closed && q->first == NULL;
    pthread_mutex_unlock(&q->lock);
    return over;
}

static size_t common_prefix(const smoe_ids *a, const smoe_ids *b)
{
    size_t i = 0, n = a->len < b->len ? a->len : b->len;
    while (i < n && a->data[i] == b->data[i]) {
        i++;
    }
    return i;
}

job *queue_choose(job *first, const http_model *model, const smoe_ids *timeline)
{
    job *best = NULL;
    size_t best_score = 0;
    for (job *j = first; j != NULL; j = j->next) {
        if (j->n_overtaken >= QUEUE_MAX_OVERTAKEN) {
            return j;
        }
        size_t score = j->model == model ? 1 + common_prefix(&j->ids, timeline) : 0;
        if (best == NULL || score > best_score) {
            best = j;
            best_score = score;
        }
    }
    return best;
}

job *queue_take(queue *q, const http_model *model, const smoe_ids *timeline)
{
    job *chosen = NULL;
    pthread_mutex_lock(&q->lock);
    while (q->first == NULL && !q->closed) {
        pthread_cond_wait(&q->more, &q->lock);
    }
    if (q->first != NULL && !q->ended) {
        chosen = queue_choose(q->first, model, timeline);
        for (job *j = q->first; j != chosen; j = j->next) {
            j->n_overtaken++;
        }
        unlink_job(q, chosen);
    }
    pthread_mutex_unlock(&q->lock);
    return chosen;
}

void queue_close(queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->more);
    pthread_mutex_unlock(&q->lock);
}

void queue_end(queue *q)
{
    http_error error;
    http_refuse(&error, HTTP_UNAVAILABLE, NULL, "the server ends; send the request again later");
    pthread_mutex_lock(&q->lock);
    q->closed = q->ended = true;
    job *j = q->first;
    q->first = NULL;
    q->n = 0;
    pthread_cond_broadcast(&q->more);
    pthread_mutex_unlock(&q->lock);
    while (j != NULL) {
        job *next = j->next;
        j->next = NULL;
        job_put_error(j, &error);
        job_release(j);
        j = next;
    }
}
