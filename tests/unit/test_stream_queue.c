#include "pool/order/stream_queue.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "fake_vm.h"

static const struct spw_stream stream_a = {.id = 1}, stream_b = {.id = 2};

struct fixture {
    struct fake_vm vm;
    struct spw_stream_queues queues;
};

static void open_lanes(struct fixture *f)
{
    fake_vm_init(&f->vm);
    assert_int_equal(spw_pool_stream_queues_init(&f->queues, &f->vm.seam), SPW_OK);
}

/* Opens the queues. Returns the one of stream_a. */
static struct spw_stream_queue *open_lane(struct fixture *f)
{
    open_lanes(f);
    return spw_pool_stream_queue_of(&f->queues, &stream_a);
}

static void close_lanes(struct fixture *f)
{
    spw_pool_stream_queues_fini(&f->queues, true);
    assert_int_equal(f->vm.live_fences, 0);
    assert_int_equal(f->vm.violations, 0);
    fake_vm_fini(&f->vm);
}

/* All fences complete, and the queue sees it. */
static void complete(struct fixture *f, struct spw_stream_queue *queue)
{
    fake_vm_complete(&f->vm);
    assert_true(spw_pool_stream_queue_poll(&f->queues, queue));
}

static void test_one_lane_for_each_stream(void **state)
{
    struct fixture f;
    struct spw_stream_queue *queue;

    open_lanes(&f);
    assert_null(spw_pool_stream_queue_known(&f.queues, stream_a.id));
    queue = spw_pool_stream_queue_of(&f.queues, &stream_a);
    assert_int_equal(queue->number, SPW_STREAM_QUEUE_FIRST_STREAM);
    assert_ptr_equal(spw_pool_stream_queue_of(&f.queues, &stream_a), queue);
    assert_ptr_equal(spw_pool_stream_queue_known(&f.queues, stream_a.id), queue);
    assert_true(spw_pool_stream_queue_of(&f.queues, &stream_b) != queue);
    assert_int_equal(f.queues.streams, 2);
    close_lanes(&f);
}

/* Ids that share a slot of the cache. */
static void test_cache_collisions(void **state)
{
    struct fixture f;
    struct spw_stream_queue *queues[4];

    open_lanes(&f);
    for (uint64_t i = 0; i < 4; i++) {
        queues[i] = spw_pool_stream_queue_of(
            &f.queues, &(struct spw_stream){.id = 1 + i * SPW_STREAM_QUEUE_CACHE});
    }
    for (uint64_t i = 0; i < 8; i++) {
        struct spw_stream stream = {.id = 1 + i % 4 * SPW_STREAM_QUEUE_CACHE};

        assert_ptr_equal(spw_pool_stream_queue_of(&f.queues, &stream), queues[i % 4]);
    }
    close_lanes(&f);
}

static void test_fence_covers_the_frees_before_it(void **state)
{
    struct fixture f;
    struct spw_stream_queue *queue = open_lane(&f);

    assert_int_equal(spw_pool_stream_queue_fence(&f.queues, queue), SPW_OK); /* nothing to cover */
    assert_int_equal(f.vm.calls[FAKE_FENCE], 0);
    queue->seq = 3;
    assert_int_equal(spw_pool_stream_queue_fence(&f.queues, queue), SPW_OK);
    assert_int_equal(spw_pool_stream_queue_fence(&f.queues, queue),
                     SPW_OK); /* one exists already */
    assert_int_equal(f.vm.calls[FAKE_FENCE], 1);
    queue->seq = 5;
    assert_false(spw_pool_stream_queue_poll(&f.queues, queue));
    assert_false(spw_pool_stream_queue_passed(&f.queues, queue->number, 1));
    fake_vm_complete(&f.vm);
    assert_int_equal(spw_pool_stream_queue_fence(&f.queues, queue), SPW_OK);
    assert_true(spw_pool_stream_queue_poll(&f.queues, queue));
    assert_true(spw_pool_stream_queue_passed(&f.queues, queue->number, 3));
    assert_false(spw_pool_stream_queue_passed(&f.queues, queue->number, 4));
    assert_false(spw_pool_stream_queue_poll(&f.queues, queue));
    complete(&f, queue);
    assert_true(spw_pool_stream_queue_passed(&f.queues, queue->number, 5));
    assert_int_equal(f.vm.live_fences, 0);
    close_lanes(&f);
}

static void test_more_fences_than_places(void **state)
{
    struct fixture f;
    struct spw_stream_queue *queue = open_lane(&f);

    for (int i = 0; i < 3 * SPW_STREAM_QUEUE_FENCES; i++) {
        queue->seq++;
        assert_int_equal(spw_pool_stream_queue_fence(&f.queues, queue), SPW_OK);
        assert_true(f.vm.live_fences <= SPW_STREAM_QUEUE_FENCES);
    }
    assert_int_equal(queue->fenced, queue->seq);
    complete(&f, queue);
    assert_int_equal(queue->done, queue->seq);
    close_lanes(&f);
}

static void test_no_fence_in_a_capture(void **state)
{
    struct fixture f;
    struct spw_stream_queue *queue = open_lane(&f);

    queue->seq = 1;
    f.vm.capturing = true;
    assert_int_equal(spw_pool_stream_queue_fence(&f.queues, queue), SPW_E_AGAIN);
    assert_int_equal(queue->fenced, 0);
    f.vm.capturing = false;
    assert_int_equal(spw_pool_stream_queue_fence(&f.queues, queue), SPW_OK);
    f.vm.capturing = true;
    fake_vm_complete(&f.vm);
    assert_false(spw_pool_stream_queue_poll(&f.queues, queue));
    f.vm.capturing = false;
    assert_true(spw_pool_stream_queue_poll(&f.queues, queue));
    close_lanes(&f);
}

static void test_retired_lane_serves_another_stream(void **state)
{
    struct fixture f;
    struct spw_stream_queue *queue = open_lane(&f);

    queue->seq = 7;
    assert_int_equal(spw_pool_stream_queue_fence(&f.queues, queue), SPW_OK);
    queue->retired = true;
    spw_pool_stream_queue_collect(&f.queues, queue);
    assert_false(queue->vacant); /* its work is pending */
    assert_true(spw_pool_stream_queue_of(&f.queues, &stream_b) != queue);
    complete(&f, queue);
    spw_pool_stream_queue_collect(&f.queues, queue);
    assert_true(queue->vacant);
    assert_null(spw_pool_stream_queue_known(&f.queues, stream_a.id));
    assert_ptr_equal(spw_pool_stream_queue_of(&f.queues, &(struct spw_stream){.id = 3}), queue);
    assert_int_equal(queue->seq, 7); /* numbers keep rising */
    assert_true(spw_pool_stream_queue_passed(&f.queues, queue->number, 7));
    assert_int_equal(f.queues.streams, 2);
    close_lanes(&f);
}

/* A thread ends without a word. The queue of its own stream serves another one when nothing waits
 * for it any more, and no request names it; that of a created stream does not. */
static void test_quiet_queue_of_a_thread(void **state)
{
    const struct spw_stream bound = {.id = 11, .thread_bound = true};
    const struct spw_stream other = {.id = 12, .thread_bound = true}, created = {.id = 13};
    struct fixture f;
    struct spw_stream_queue *queue, *second;

    open_lanes(&f);
    queue = spw_pool_stream_queue_of(&f.queues, &bound);
    queue->seq = 5;
    second = spw_pool_stream_queue_of(&f.queues, &other); /* a free waits in the first one */
    assert_ptr_not_equal(second, queue);
    second->users = 1;
    assert_int_equal(spw_pool_stream_queue_fence(&f.queues, queue), SPW_OK);
    complete(&f, queue);
    assert_ptr_equal(spw_pool_stream_queue_of(&f.queues, &created), queue);
    assert_null(spw_pool_stream_queue_known(&f.queues, bound.id));
    assert_int_equal(queue->seq, 5);
    assert_int_equal(f.queues.streams, 2);
    /* The second is in use by a request, and the first belongs to a stream now. */
    assert_int_equal(spw_pool_stream_queue_of(&f.queues, &bound)->number,
                     SPW_STREAM_QUEUE_FIRST_STREAM + 2);
    assert_ptr_equal(spw_pool_stream_queue_of(&f.queues, &other), second);
    close_lanes(&f);
}

struct heir {
    struct fixture *fixture;
    struct spw_stream_queue *queue; /* that its thread found */
};

static const struct spw_stream stream_of_heir = {.id = 12, .thread_bound = true};

static void *inherit(void *argument)
{
    struct heir *heir = argument;

    heir->queue = spw_pool_stream_queue_of(&heir->fixture->queues, &stream_of_heir);
    heir->queue->seq++;
    assert_int_equal(spw_pool_stream_queue_fence(&heir->fixture->queues, heir->queue), SPW_OK);
    return NULL;
}

/* The thread that uses a quiet queue again can record fences on its own stream. */
static void test_quiet_queue_of_another_thread(void **state)
{
    const struct spw_stream bound = {.id = 11, .thread_bound = true};
    struct fixture f;
    struct heir heir = {.fixture = &f};
    struct spw_stream_queue *queue;
    pthread_t thread;

    open_lanes(&f);
    queue = spw_pool_stream_queue_of(&f.queues, &bound);
    assert_int_equal(pthread_create(&thread, NULL, inherit, &heir), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ptr_equal(heir.queue, queue);
    assert_int_equal(f.vm.fenced_stream, stream_of_heir.id);
    queue->seq++; /* and this thread cannot any more */
    assert_int_equal(spw_pool_stream_queue_fence(&f.queues, queue), SPW_OK);
    assert_int_equal(f.vm.fenced_stream, SPW_STREAM_ALL);
    close_lanes(&f);
}

/* ---- waiting without the lock ---- */

static void add_fence(struct fixture *f, struct spw_stream_queue *queue)
{
    queue->seq++;
    assert_int_equal(spw_pool_stream_queue_fence(&f->queues, queue), SPW_OK);
}

static struct spw_stream_queue *open_pending(struct fixture *f, struct spw_fence_record *ret_record)
{
    struct spw_stream_queue *queue = open_lane(f);

    add_fence(f, queue);
    assert_ptr_equal(spw_pool_stream_queue_take_pending(&f->queues, ret_record), queue);
    assert_int_equal(queue->count, 0);
    return queue;
}

static void test_awaited_fence(void **state)
{
    struct fixture f;
    struct spw_fence_record record;
    struct spw_stream_queue *queue = open_pending(&f, &record);

    assert_null(spw_pool_stream_queue_take_pending(&f.queues, &record));
    spw_pool_stream_queue_waited(&f.queues, queue, record, true);
    assert_int_equal(queue->done, 1);
    assert_int_equal(f.vm.live_fences, 0);
    close_lanes(&f);
}

static void test_refused_fence_stays_pending(void **state)
{
    struct fixture f;
    struct spw_fence_record record;
    struct spw_stream_queue *queue = open_pending(&f, &record);

    spw_pool_stream_queue_waited(&f.queues, queue, record, false);
    assert_int_equal(queue->done, 0);
    assert_int_equal(queue->count, 1);
    complete(&f, queue);
    close_lanes(&f);
}

static void test_refused_fence_with_a_newer_one(void **state)
{
    struct fixture f;
    struct spw_fence_record record;
    struct spw_stream_queue *queue = open_pending(&f, &record);

    add_fence(&f, queue);
    spw_pool_stream_queue_waited(&f.queues, queue, record, false);
    assert_int_equal(queue->count, 1);
    assert_int_equal(f.vm.live_fences, 1);
    complete(&f, queue);
    assert_int_equal(queue->done, 2);
    close_lanes(&f);
}

/* While one thread waited without success, another saw a newer fence complete. */
static void test_refused_fence_that_is_old(void **state)
{
    struct fixture f;
    struct spw_fence_record record;
    struct spw_stream_queue *queue = open_pending(&f, &record);

    add_fence(&f, queue);
    complete(&f, queue);
    spw_pool_stream_queue_waited(&f.queues, queue, record, false);
    assert_int_equal(queue->count, 0);
    assert_int_equal(queue->done, 2);
    close_lanes(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_lane_for_each_stream),
        cmocka_unit_test(test_cache_collisions),
        cmocka_unit_test(test_fence_covers_the_frees_before_it),
        cmocka_unit_test(test_more_fences_than_places),
        cmocka_unit_test(test_no_fence_in_a_capture),
        cmocka_unit_test(test_retired_lane_serves_another_stream),
        cmocka_unit_test(test_quiet_queue_of_a_thread),
        cmocka_unit_test(test_awaited_fence),
        cmocka_unit_test(test_refused_fence_stays_pending),
        cmocka_unit_test(test_refused_fence_with_a_newer_one),
        cmocka_unit_test(test_refused_fence_that_is_old),
        cmocka_unit_test(test_quiet_queue_of_another_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
