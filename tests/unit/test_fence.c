/* Fences made of events, over a driver in plain memory: what a fence covers, what is kept for
 * later, and what becomes of both when contexts go. */
#include "backend/fence.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "fake_driver.h"

static const struct spw_stream all = {.id = SPW_STREAM_ALL};

static struct spw_backend_fences fences;

static struct spw_stream stream_of(size_t number)
{
    return (struct spw_stream){.id = 100 + number,
                               .handle = (void *)(uintptr_t)(0x100 + number),
                               .context = fake_driver_context(number)};
}

/* Knows `count` contexts of the device; none is current. */
static void open(size_t count)
{
    spw_backend_fences_init(&fences, fake_driver_reset(), 0);
    for (size_t i = 0; i < count; i++) {
        spw_backend_fences_note_context(&fences, fake_driver_context(i), /* peer */ false);
    }
}

/* Ends a test: no context has stayed current, and nothing is left. */
static void close(void)
{
    assert_null(fake_driver_current());
    spw_backend_fences_fini(&fences, /* destroy_events */ true);
    assert_int_equal(fake_driver_event_count(), 0);
    assert_int_equal(fake_driver.violations, 0);
}

static struct spw_backend_fence *record(const struct spw_stream *stream)
{
    struct spw_backend_fence *fence = NULL;

    assert_int_equal(spw_backend_fence_record(&fences, stream, &fence), SPW_OK);
    assert_non_null(fence);
    return fence;
}

static void refuse(const struct spw_stream *stream, enum spw_err expected)
{
    struct spw_backend_fence *fence = NULL;

    assert_int_equal(spw_backend_fence_record(&fences, stream, &fence), expected);
    assert_null(fence);
}

static void expect(struct spw_backend_fence *fence, enum spw_err expected)
{
    assert_int_equal(spw_backend_fence_query(&fences, fence), expected);
    assert_int_equal(spw_backend_fence_wait_soon(&fences, fence, 1000), expected);
}

/* ---- what a fence covers ---- */

/* One event of the stream's own context, whichever is current. */
static void test_stream(void **state)
{
    const struct spw_stream stream = stream_of(1);
    struct spw_backend_fence *fence;

    open(2);
    fake_driver_set_current(fake_driver_context(0));
    fence = record(&stream);
    assert_ptr_equal(fake_driver_current(), fake_driver_context(0));
    assert_int_equal(fake_driver.calls[SPW_CALL_cuCtxPushCurrent_v2], 1);
    fake_driver_set_current(stream.context);
    spw_backend_fence_drop(&fences, fence);
    fence = record(&stream);
    assert_int_equal(fake_driver.calls[SPW_CALL_cuCtxPushCurrent_v2], 1); /* it is current */
    assert_int_equal(fake_driver_event_count(), 1);
    fake_driver_set_current(fake_driver_context(0));
    assert_ptr_equal(fake_driver.events[0].recorded_on, stream.handle);
    assert_ptr_equal(fake_driver.events[0].context, stream.context);
    expect(fence, SPW_E_AGAIN);
    fake_driver_complete(stream.context);
    expect(fence, SPW_OK);
    assert_int_equal(spw_backend_fence_wait(&fences, fence), SPW_OK);
    spw_backend_fence_drop(&fences, fence);
    fake_driver_set_current(NULL);
    close();
}

/* A fence of the device is complete when the events of all contexts are, not one of them earlier.
 */
static void test_every_context(void **state)
{
    enum { COUNT = 3 };

    for (size_t late = 0; late < COUNT; late++) {
        struct spw_backend_fence *fence;

        open(COUNT);
        fence = record(&all);
        assert_int_equal(fake_driver_event_count(), COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            expect(fence, SPW_E_AGAIN);
            if (i != late) {
                fake_driver_complete(fake_driver_context(i));
            }
        }
        expect(fence, SPW_E_AGAIN);
        fake_driver_complete(fake_driver_context(late));
        expect(fence, SPW_OK);
        spw_backend_fence_drop(&fences, fence);
        close();
    }
}

/* A stream waits for the events of all contexts. */
static void test_stream_waits(void **state)
{
    const struct spw_stream stream = stream_of(0);
    struct spw_backend_fence *fence;

    open(3);
    fence = record(&all);
    assert_int_equal(spw_backend_fence_wait_stream(&fences, &stream, fence), SPW_OK);
    assert_ptr_equal(fake_driver.waiting, stream.handle);
    assert_int_equal(fake_driver.waited_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_ptr_not_equal(fake_driver.waited[i], fake_driver.waited[(i + 1) % 3]);
    }
    fake_driver_fail(SPW_CALL_cuStreamWaitEvent, 1, 1, CUDA_ERROR_UNKNOWN);
    assert_int_not_equal(spw_backend_fence_wait_stream(&fences, &stream, fence), SPW_OK);
    spw_backend_fence_drop(&fences, fence);
    close();
}

/* A context that was noted twice has one event; a peer's counts, and is not the device's own. */
static void test_contexts(void **state)
{
    struct spw_backend_fence *fence;

    open(0);
    assert_null(spw_backend_fences_own_context(&fences));
    spw_backend_fences_note_context(&fences, NULL, false);
    spw_backend_fences_note_context(&fences, fake_driver_context(0), false);
    spw_backend_fences_note_context(&fences, fake_driver_context(0), false);
    spw_backend_fences_note_context(&fences, fake_driver_context(1), /* peer */ true);
    assert_ptr_equal(spw_backend_fences_own_context(&fences), fake_driver_context(0));
    spw_backend_fences_note_context(&fences, fake_driver_context(2), false);
    assert_ptr_equal(spw_backend_fences_own_context(&fences), fake_driver_context(0)); /* oldest */
    spw_backend_fences_forget_context(&fences, fake_driver_context(2));
    fence = record(&all);
    assert_int_equal(fake_driver_event_count(), 2);
    spw_backend_fence_drop(&fences, fence);
    spw_backend_fences_forget_context(&fences, fake_driver_context(0));
    assert_null(spw_backend_fences_own_context(&fences));
    spw_backend_fences_forget_contexts(&fences);
    fence = record(&all);
    expect(fence, SPW_OK); /* there is nothing to wait for */
    spw_backend_fence_drop(&fences, fence);
    fake_driver_destroy(0);
    fake_driver_destroy(1);
    close();
}

/* ---- events that are kept ---- */

static void test_events_are_reused(void **state)
{
    struct spw_backend_fence *fence;

    open(2);
    for (int i = 0; i < 4; i++) {
        struct spw_backend_fence *other = record(&all);

        fence = record(&all);
        assert_ptr_not_equal(fence, other);
        fake_driver_complete(NULL);
        expect(fence, SPW_OK);
        spw_backend_fence_drop(&fences, fence);
        spw_backend_fence_drop(&fences, other);
    }
    assert_int_equal(fake_driver.calls[SPW_CALL_cuEventCreate], 4);
    fence = record(&all); /* its events were complete */
    expect(fence, SPW_E_AGAIN);
    spw_backend_fence_drop(&fences, fence);
    close();
}

/* The events of a context go with it, those in fences and those that are kept. A new context may
 * get its handle. */
static void test_context_goes(void **state)
{
    struct spw_backend_fence *kept, *fence;

    open(2);
    kept = record(&all);
    fence = record(&all);
    spw_backend_fence_drop(&fences, fence);
    fake_driver_complete(fake_driver_context(0));
    expect(kept, SPW_E_AGAIN);
    spw_backend_fences_forget_context(&fences, fake_driver_context(1));
    fake_driver_destroy(1);
    expect(kept, SPW_OK);
    fence = record(&all);
    assert_int_equal(fake_driver_event_count(), 2); /* of the context that is left */
    spw_backend_fence_drop(&fences, fence);

    fake_driver_remake(1);
    spw_backend_fences_note_context(&fences, fake_driver_context(1), false);
    fence = record(&all);
    assert_int_equal(fake_driver_event_count(), 3);
    fake_driver_complete(fake_driver_context(0));
    expect(fence, SPW_E_AGAIN);
    fake_driver_complete(fake_driver_context(1));
    expect(fence, SPW_OK);
    spw_backend_fence_drop(&fences, fence);
    spw_backend_fence_drop(&fences, kept);
    close();
}

/* A context that was destroyed without a word needs no event, and its work is complete. */
static void test_context_is_gone(void **state)
{
    const struct spw_stream stream = stream_of(1);
    struct spw_backend_fence *of_stream, *of_all;

    open(2);
    of_stream = record(&stream);
    fake_driver.gone[1] = true;
    of_all = record(&all);
    expect(of_stream, SPW_OK);
    expect(of_all, SPW_E_AGAIN);
    fake_driver_complete(fake_driver_context(0));
    expect(of_all, SPW_OK);
    spw_backend_fence_drop(&fences, of_stream);
    spw_backend_fence_drop(&fences, of_all);
    close();
}

/* ---- refusals ---- */

static void test_captures(void **state)
{
    const struct spw_stream stream = stream_of(0);
    struct spw_backend_fence *fence, *of_all;

    open(1);
    fake_driver.driver.captures_open = 1;
    refuse(&all, SPW_E_AGAIN);
    fence = record(&stream); /* another one is being captured */
    fake_driver.capturing = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    refuse(&stream, SPW_E_AGAIN);
    assert_int_equal(spw_backend_fence_wait_stream(&fences, &stream, fence), SPW_E_AGAIN);
    fake_driver.capturing = CU_STREAM_CAPTURE_STATUS_NONE;
    assert_int_equal(spw_backend_fence_wait_stream(&fences, &stream, fence), SPW_OK);
    fake_driver.capturing_result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    refuse(&stream, SPW_E_AGAIN);
    fake_driver.driver.captures_open = 0;
    of_all = record(&all);
    spw_backend_fence_drop(&fences, of_all);
    spw_backend_fence_drop(&fences, fence);
    close();
}

/* When one event cannot be had, the fence is not made, and what it had already is kept. */
static void test_faults(void **state)
{
    static const enum spw_own_call calls[] = {SPW_CALL_cuEventCreate, SPW_CALL_cuCtxRecordEvent,
                                              SPW_CALL_cuCtxGetCurrent,
                                              SPW_CALL_cuCtxPushCurrent_v2};

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        for (size_t after = 0; after < 3; after++) {
            struct spw_backend_fence *fence;

            open(3);
            fake_driver_fail(calls[i], after, 1, CUDA_ERROR_LAUNCH_FAILED);
            refuse(&all, calls[i] == SPW_CALL_cuEventCreate
                             ? SPW_E_NO_MEMORY
                             : spw_err_from_driver(CUDA_ERROR_LAUNCH_FAILED));
            assert_int_equal(fake_driver.fail_count, 0);
            fence = record(&all);
            assert_int_equal(fake_driver_event_count(), 3);
            expect(fence, SPW_E_AGAIN);
            fake_driver_complete(NULL);
            expect(fence, SPW_OK);
            fake_driver_fail(SPW_CALL_cuEventQuery, 2, 1, CUDA_ERROR_LAUNCH_FAILED);
            assert_int_equal(spw_backend_fence_query(&fences, fence),
                             spw_err_from_driver(CUDA_ERROR_LAUNCH_FAILED));
            spw_backend_fence_drop(&fences, fence);
            close();
        }
    }
}

/* A thread without a context asks in that of the fence. When it cannot enter that, the error is
 * told, and what was not asked is not taken for complete. */
static void test_context_is_refused(void **state)
{
    const enum spw_err err = spw_err_from_driver(CUDA_ERROR_LAUNCH_FAILED);
    const struct spw_stream stream = stream_of(0);
    struct spw_backend_fence *watched, *fence;

    open(1);
    assert_int_equal(spw_backend_fence_watch(&fences, &stream, &watched), SPW_OK);
    fence = record(&stream);
    fake_driver_complete(NULL);
    fake_driver_fail(SPW_CALL_cuCtxPushCurrent_v2, 0, 3, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(spw_backend_fence_query(&fences, watched), err);
    assert_int_equal(spw_backend_fence_query(&fences, fence), err);
    assert_int_equal(spw_backend_fence_wait_stream(&fences, &stream, fence), err);
    assert_int_equal(fake_driver.fail_count, 0);
    assert_int_equal(fake_driver.waited_count, 0);
    assert_int_equal(spw_backend_fence_query(&fences, fence), SPW_OK);
    spw_backend_fence_drop(&fences, watched);
    spw_backend_fence_drop(&fences, fence);
    close();
}

/* ---- on a driver without cuCtxRecordEvent ---- */

static void open_old(size_t count, bool has_function)
{
    open(count);
    if (has_function) {
        fake_driver_fail(SPW_CALL_cuCtxRecordEvent, 1, 1, CUDA_ERROR_NOT_SUPPORTED);
    } else {
        fake_driver.driver.cuCtxRecordEvent = NULL;
    }
}

/* Fences are deferred until all contexts are synchronised, whether the function is missing or
 * refuses, after one event or more. */
static void test_deferred(void **state)
{
    for (int has_function = 0; has_function < 2; has_function++) {
        struct spw_backend_fence *first, *second;
        const struct spw_stream stream = stream_of(0);

        open_old(3, has_function);
        assert_int_equal(spw_backend_fences_defer(&fences), !has_function);
        first = record(&all);
        assert_null(first->events);
        assert_true(spw_backend_fences_defer(&fences));
        assert_true(spw_backend_fence_is_deferred(&fences, first));
        fake_driver_complete(NULL);
        expect(first, SPW_E_AGAIN);
        assert_int_equal(spw_backend_fence_wait_stream(&fences, &stream, first), SPW_E_AGAIN);
        fake_driver.driver.captures_open = 1;
        assert_int_equal(spw_backend_fence_wait(&fences, first), SPW_E_AGAIN);
        fake_driver.driver.captures_open = 0;
        fake_driver_fail(SPW_CALL_cuCtxSynchronize, 1, 1, CUDA_ERROR_LAUNCH_FAILED);
        assert_int_equal(spw_backend_fence_wait(&fences, first),
                         spw_err_from_driver(CUDA_ERROR_LAUNCH_FAILED));
        expect(first, SPW_E_AGAIN);
        assert_int_equal(spw_backend_fence_wait(&fences, first), SPW_OK);
        for (size_t i = 0; i < 3; i++) {
            assert_true(fake_driver.synchronized[i]);
        }
        assert_false(spw_backend_fence_is_deferred(&fences, first));
        expect(first, SPW_OK);
        second = record(&all);
        expect(second, SPW_E_AGAIN); /* it was made later */
        expect(first, SPW_OK);
        spw_backend_fence_drop(&fences, first);
        spw_backend_fence_drop(&fences, second);
        close();
    }
}

/* A context that was noted later does not matter to a deferred fence; one that is forgotten, or
 * destroyed without a word, has no work left. */
static void test_deferred_and_contexts(void **state)
{
    struct spw_backend_fence *fence;

    open_old(3, false);
    fence = record(&all);
    spw_backend_fences_note_context(&fences, fake_driver_context(3), false);
    spw_backend_fences_forget_context(&fences, fake_driver_context(1));
    fake_driver.gone[2] = true;
    assert_int_equal(spw_backend_fence_wait(&fences, fence), SPW_OK);
    assert_true(fake_driver.synchronized[0]);
    for (size_t i = 1; i < 4; i++) {
        assert_false(fake_driver.synchronized[i]);
    }
    spw_backend_fence_drop(&fences, fence);
    fence = record(&all);
    assert_int_equal(spw_backend_fence_wait(&fences, fence), SPW_OK);
    assert_true(fake_driver.synchronized[3]);
    spw_backend_fence_drop(&fences, fence);
    close();
}

/* The record of a deferred fence serves another one, which is not deferred. */
static void test_deferred_once(void **state)
{
    const struct spw_stream stream = stream_of(0);
    struct spw_backend_fence *fence;

    open_old(1, false);
    spw_backend_fence_drop(&fences, record(&all));
    fence = record(&stream);
    assert_false(spw_backend_fence_is_deferred(&fences, fence));
    expect(fence, SPW_E_AGAIN);
    fake_driver_complete(stream.context);
    expect(fence, SPW_OK);
    spw_backend_fence_drop(&fences, fence);
    close();
}

static struct spw_backend_fence *later;

static void record_later(CUcontext context)
{
    fake_driver.on_synchronize = NULL;
    later = record(&all);
}

/* A fence that is made while contexts are synchronised needs them to be synchronised again. */
static void test_deferred_meanwhile(void **state)
{
    struct spw_backend_fence *fence;

    open_old(2, false);
    fence = record(&all);
    fake_driver.on_synchronize = record_later;
    assert_int_equal(spw_backend_fence_wait(&fences, fence), SPW_OK);
    expect(fence, SPW_OK);
    expect(later, SPW_E_AGAIN);
    fake_driver.synchronized[0] = fake_driver.synchronized[1] = false;
    assert_int_equal(spw_backend_fence_wait(&fences, later), SPW_OK);
    assert_true(fake_driver.synchronized[0] && fake_driver.synchronized[1]);
    spw_backend_fence_drop(&fences, fence);
    spw_backend_fence_drop(&fences, later);
    close();
}

/* ---- a context that goes while it is waited for ---- */

static struct {
    _Atomic bool inside, forgotten, let_go;
} scene;

static void hold(CUcontext context)
{
    atomic_store(&scene.inside, true);
    while (!atomic_load(&scene.let_go)) {
        sched_yield();
    }
}

static void *wait_for(void *fence)
{
    return spw_backend_fence_wait(&fences, fence) == SPW_OK ? fence : NULL;
}

static void *forget(void *context)
{
    spw_backend_fences_forget_context(&fences, context);
    atomic_store(&scene.forgotten, true);
    return context;
}

/* Forgetting a context waits until no thread synchronises it any more, and the records stay usable
 * meanwhile. */
static void test_forgotten_while_synchronized(void **state)
{
    const struct timespec moment = {.tv_nsec = 20 * 1000 * 1000};
    const struct spw_stream stream = stream_of(1);
    struct spw_backend_fence *fence, *other;
    pthread_t waiter, forgetter;
    void *result;

    open_old(1, false);
    scene.inside = scene.forgotten = scene.let_go = false;
    fake_driver.on_synchronize = hold;
    fence = record(&all);
    assert_int_equal(pthread_create(&waiter, NULL, wait_for, fence), 0);
    while (!atomic_load(&scene.inside)) {
        sched_yield();
    }
    assert_int_equal(pthread_create(&forgetter, NULL, forget, fake_driver_context(0)), 0);
    other = record(&stream);
    spw_backend_fence_drop(&fences, other);
    nanosleep(&moment, NULL);
    assert_false(atomic_load(&scene.forgotten));
    atomic_store(&scene.let_go, true);
    assert_int_equal(pthread_join(waiter, &result), 0);
    assert_non_null(result);
    assert_int_equal(pthread_join(forgetter, &result), 0);
    assert_null(spw_backend_fences_own_context(&fences));
    fake_driver_destroy(0);
    spw_backend_fence_drop(&fences, fence);
    close();
}

static _Atomic int arrived, released;

/* Threads leave in the order in which they came. */
static void hold_in_turn(CUcontext context)
{
    int own = atomic_fetch_add(&arrived, 1);

    while (atomic_load(&released) <= own) {
        sched_yield();
    }
}

static pthread_t wait_on_thread(struct spw_backend_fence *fence)
{
    int before = atomic_load(&arrived);
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, wait_for, fence), 0);
    while (atomic_load(&arrived) == before) {
        sched_yield();
    }
    return thread;
}

static void release_next(pthread_t thread)
{
    void *result;

    atomic_fetch_add(&released, 1);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_non_null(result);
}

/* Two threads wait for one context, and the first to come is the first to go. Another context can
 * be forgotten meanwhile; that one only when both have left it. */
static void test_synchronized_by_two(void **state)
{
    const struct timespec moment = {.tv_nsec = 20 * 1000 * 1000};
    pthread_t waiters[2], forgetter;
    struct spw_backend_fence *fence;

    open_old(2, false);
    scene.forgotten = false;
    arrived = released = 0;
    fake_driver.on_synchronize = hold_in_turn;
    fence = record(&all);
    waiters[0] = wait_on_thread(fence);
    waiters[1] = wait_on_thread(fence);
    spw_backend_fences_forget_context(&fences, fake_driver_context(0));
    release_next(waiters[0]);
    expect(fence, SPW_OK);
    assert_int_equal(pthread_create(&forgetter, NULL, forget, fake_driver_context(1)), 0);
    nanosleep(&moment, NULL);
    assert_false(atomic_load(&scene.forgotten));
    release_next(waiters[1]);
    assert_int_equal(pthread_join(forgetter, NULL), 0);
    assert_false(fake_driver.synchronized[0]);
    expect(fence, SPW_OK);
    fake_driver_destroy(1);
    spw_backend_fence_drop(&fences, fence);
    close();
}

/* Without their contexts, events are not given to the driver any more. */
static void test_end_without_contexts(void **state)
{
    open(2);
    spw_backend_fence_drop(&fences, record(&all));
    spw_backend_fences_fini(&fences, /* destroy_events */ false);
    assert_int_equal(fake_driver.calls[SPW_CALL_cuEventDestroy_v2], 0);
    assert_int_equal(fake_driver.violations, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_every_context),
        cmocka_unit_test(test_stream_waits),
        cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_events_are_reused),
        cmocka_unit_test(test_context_goes),
        cmocka_unit_test(test_context_is_gone),
        cmocka_unit_test(test_captures),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_deferred),
        cmocka_unit_test(test_deferred_and_contexts),
        cmocka_unit_test(test_deferred_once),
        cmocka_unit_test(test_deferred_meanwhile),
        cmocka_unit_test(test_forgotten_while_synchronized),
        cmocka_unit_test(test_synchronized_by_two),
        cmocka_unit_test(test_context_is_refused),
        cmocka_unit_test(test_end_without_contexts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
