/* Which request is next, and a request as a mailbox. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "http/queue.h"

static const http_model one = {.name = "one"}, two = {.name = "two"};

static job *with_ids(const http_model *model, const char *ids)
{
    job *j;
    smoe_err err;
    assert_int_equal(job_new(&j, &err), SMOE_OK);
    j->model = model;
    for (; *ids; ids++) {
        assert_int_equal(smoe_ids_push(&j->ids, *ids, &err), SMOE_OK);
    }
    return j;
}

static smoe_ids timeline_of(const char *ids)
{
    smoe_ids t = {0};
    for (; *ids; ids++) {
        assert_int_equal(smoe_ids_push(&t, *ids, NULL), SMOE_OK);
    }
    return t;
}

static job *chain(job **jobs, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++) {
        jobs[i]->next = jobs[i + 1];
    }
    return jobs[0];
}

static void release(job **jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        job_release(jobs[i]);
    }
}

static void test_longest_prefix(void **state)
{
    (void)state;
    smoe_ids timeline = timeline_of("abcdef"), none = {0};
    job *jobs[] = {with_ids(&one, "xyz"), with_ids(&one, "abx"), with_ids(&one, "abcx"),
                   with_ids(&one, "abcy"), with_ids(&two, "abcdef")};
    job *first = chain(jobs, 5);
    assert_ptr_equal(queue_choose(first, &one, &timeline), jobs[2]); /* the oldest of equals */
    assert_ptr_equal(queue_choose(first, &two, &timeline), jobs[4]);
    assert_ptr_equal(queue_choose(first, &one, &none), jobs[0]);
    assert_ptr_equal(queue_choose(first, NULL, &timeline), jobs[0]);
    jobs[0]->n_overtaken = QUEUE_MAX_OVERTAKEN - 1;
    assert_ptr_equal(queue_choose(first, &one, &timeline), jobs[2]);
    jobs[1]->n_overtaken = QUEUE_MAX_OVERTAKEN;
    assert_ptr_equal(queue_choose(first, &one, &timeline), jobs[1]);
    smoe_ids_free(&timeline);
    release(jobs, 5);
}

/* Whatever comes in, nobody is overtaken more often than promised. */
static void test_nobody_starves(void **state)
{
    (void)state;
    queue q;
    smoe_ids timeline = timeline_of("abc");
    queue_init(&q, 100);
    job *poor = with_ids(&two, "x");
    assert_int_equal(queue_put(&q, poor), QUEUE_TAKEN);
    for (int i = 0;; i++) {
        job *rich = with_ids(&one, "abcd");
        assert_int_equal(queue_put(&q, rich), QUEUE_TAKEN);
        job *taken = queue_take(&q, &one, &timeline);
        job_release(rich);
        job_release(taken);
        if (taken == poor) {
            assert_int_equal(i, QUEUE_MAX_OVERTAKEN);
            break;
        }
    }
    job_release(poor);
    queue_end(&q);
    queue_fini(&q);
    smoe_ids_free(&timeline);
}

static void test_limits(void **state)
{
    (void)state;
    queue q;
    smoe_ids none = {0};
    queue_init(&q, 1);
    job *jobs[] = {with_ids(&one, "a"), with_ids(&one, "b")};
    assert_int_equal(queue_put(&q, jobs[0]), QUEUE_TAKEN);
    assert_int_equal(queue_put(&q, jobs[1]), QUEUE_FULL);
    assert_true(queue_remove(&q, jobs[0]));
    assert_false(queue_remove(&q, jobs[0]));
    assert_int_equal(queue_put(&q, jobs[1]), QUEUE_TAKEN);
    queue_close(&q);
    assert_int_equal(queue_put(&q, jobs[0]), QUEUE_CLOSED);
    assert_ptr_equal(queue_take(&q, &one, &none), jobs[1]);
    job_release(jobs[1]);
    assert_null(queue_take(&q, &one, &none));
    queue_fini(&q);
    release(jobs, 2);
}

static void test_end_tells_those_who_wait(void **state)
{
    (void)state;
    queue q;
    job_batch batch;
    bool ended;
    queue_init(&q, 9);
    job_batch_init(&batch);
    job *j = with_ids(&one, "a");
    assert_int_equal(queue_put(&q, j), QUEUE_TAKEN);
    queue_end(&q);
    job_take(j, 0, &batch, &ended);
    assert_int_equal(batch.n, 1);
    assert_int_equal(batch.events[0].kind, HTTP_EVENT_ERROR);
    assert_int_equal(batch.events[0].error->kind, HTTP_UNAVAILABLE);
    assert_true(ended);
    job_batch_fini(&batch);
    job_release(j);
    queue_fini(&q);
}

static void test_mailbox(void **state)
{
    (void)state;
    job_batch batch;
    bool ended;
    char text[32];
    job *j = with_ids(&one, "a");
    job_batch_init(&batch);
    job_take(j, 1, &batch, &ended);
    assert_int_equal(batch.n, 0);
    assert_false(ended);
    job_put_progress(j, 1, 9);
    job_put_progress(j, 5, 9); /* replaces what nobody has read */
    for (int i = 0; i < 100; i++) {
        job_put_text(j, HTTP_EVENT_CONTENT, 0, slice_of(text, (size_t)snprintf(text, 32, "%d", i)));
    }
    job_put_end(j, &(http_end){.fin = HTTP_FIN_LENGTH, .n_prompt = 7});
    job_put_text(j, HTTP_EVENT_CONTENT, 0, slice_from("too late"));
    job_take(j, 1000, &batch, &ended);
    assert_true(ended);
    assert_int_equal(batch.n, 102);
    assert_int_equal(batch.events[0].done, 5);
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "%d", i);
        assert_true(slice_is(batch.events[1 + i].text, text));
    }
    assert_int_equal(batch.events[101].kind, HTTP_EVENT_END);
    assert_int_equal(batch.events[101].end->n_prompt, 7);
    job_take(j, 1000, &batch, &ended); /* at once: nothing will follow */
    assert_int_equal(batch.n, 0);
    job_batch_fini(&batch);
    job_release(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_longest_prefix), cmocka_unit_test(test_nobody_starves),
        cmocka_unit_test(test_limits),         cmocka_unit_test(test_end_tells_those_who_wait),
        cmocka_unit_test(test_mailbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
