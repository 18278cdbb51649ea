/* Events: records, waits across streams and contexts, virtual time, host functions. */
#include "work.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static void test_flags_and_handles(void **state)
{
    CUevent event = new_event(CU_EVENT_BLOCKING_SYNC), again;

    FAILS(cuEventCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuEventCreate(&again, 64), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuEventCreate(&again, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventQuery(event)); /* never recorded: an empty set of work */
    OK(cuEventSynchronize(event));
    OK(cuEventDestroy(event));
    FAILS(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuEventRecord(event, NULL), CUDA_ERROR_INVALID_HANDLE);
    again = new_event(0);
    assert_ptr_equal(again, event);
    OK(cuEventDestroy(again));
}

static void test_record_and_query(void **state)
{
    const struct work *work = *state;
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = new_event(0);
    uint32_t *flag = new_flag();

    OK(launch_spin(work, stream, device_address(flag)));
    OK(cuEventRecord(event, stream));
    FAILS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    *flag = 1;
    OK(cuEventSynchronize(event));
    OK(cuEventQuery(event));
    FAILS(cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL),
          CUDA_ERROR_INVALID_VALUE);
    FAILS(cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
}

/* Recording again changes what the event stands for, but not what waits for the first record. */
static void test_record_overwrites(void **state)
{
    const struct work *work = *state;
    CUstream first = new_stream(CU_STREAM_NON_BLOCKING);
    CUstream second = new_stream(CU_STREAM_NON_BLOCKING);
    CUstream waiting = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr words = new_words(1);
    CUevent event = new_event(CU_EVENT_DISABLE_TIMING);
    uint32_t *flag = new_flag();

    OK(launch_spin(work, first, device_address(flag)));
    OK(cuEventRecord(event, first));
    OK(cuStreamWaitEvent(waiting, event, 0));
    OK(cuMemsetD32Async(words, 1, 1, waiting));
    OK(cuEventRecord(event, second));
    OK(cuEventSynchronize(event));
    FAILS(cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
    OK(cuEventDestroy(event)); /* neither does destroying it */
    assert_int_equal(word_at(words, second), 0);
    *flag = 1;
    OK(cuStreamSynchronize(waiting));
    assert_int_equal(word_at(words, second), 1);
}

static void test_event_orders_streams(void **state)
{
    const struct work *work = *state;
    CUstream producer = new_stream(CU_STREAM_NON_BLOCKING);
    CUstream consumer = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr words = new_words(2);
    CUevent ready = new_event(CU_EVENT_DISABLE_TIMING);
    uint32_t *flag = new_flag();

    OK(launch_spin(work, producer, device_address(flag)));
    OK(launch_fill(work, producer, words, 1, 42));
    OK(cuEventRecord(ready, producer));
    OK(cuStreamWaitEvent(consumer, ready, 0));
    OK(launch_copy(work, consumer, words + 4, words, 1));
    FAILS(cuStreamQuery(consumer), CUDA_ERROR_NOT_READY);
    *flag = 1;
    assert_int_equal(word_at(words + 4, consumer), 42);
}

static void test_elapsed_time(void **state)
{
    CUstream stream = new_stream(0);
    CUevent start = new_event(0), end = new_event(0);
    CUevent untimed = new_event(CU_EVENT_DISABLE_TIMING);
    float ms = -1;

    FAILS(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventRecord(start, stream));
    for (int i = 0; i < 1000; i++) {
        cuStreamQuery(stream);
    }
    OK(cuEventRecord(end, stream));
    OK(cuEventRecord(untimed, stream));
    OK(cuEventSynchronize(end));
    OK(cuEventElapsedTime(&ms, start, end));
    assert_true(ms > 0.9F && ms < 1.1F); /* a microsecond of virtual time for each call */
    OK(cuEventElapsedTime(&ms, end, start));
    assert_true(ms < 0);
    FAILS(cuEventElapsedTime(&ms, start, untimed), CUDA_ERROR_INVALID_HANDLE);
}

static void test_events_and_contexts(void **state)
{
    const struct work *work = *state;
    CUevent event = new_event(0);
    CUcontext other = NULL;
    CUstream stream;
    uint32_t *flag = new_flag();

    OK(launch_spin(work, NULL, device_address(flag)));
    OK(cuEventRecord(event, NULL));
    OK(cuCtxCreate(&other, NULL, 0, 0));
    stream = new_stream(0);
    FAILS(cuEventRecord(event, stream), CUDA_ERROR_INVALID_HANDLE);
    OK(cuStreamWaitEvent(stream, event, 0)); /* waiting across contexts is allowed */
    FAILS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    *flag = 1;
    OK(cuStreamSynchronize(stream));
    OK(cuCtxDestroy(other));
    OK(cuCtxSetCurrent(work->ctx));
}

static void test_whole_context(void **state)
{
    const struct work *work = *state;
    CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING), later;
    CUevent all = new_event(0), one = new_event(0);
    CUdeviceptr words = new_words(2);
    uint32_t *flag = new_flag(), *second = new_flag();

    OK(launch_spin(work, a, device_address(flag)));
    OK(cuCtxRecordEvent(work->ctx, all));
    OK(cuMemsetD32Async(words, 1, 1, b));
    OK(cuStreamSynchronize(b)); /* work after the record is not part of it */
    FAILS(cuEventQuery(all), CUDA_ERROR_NOT_READY);
    *flag = 1;
    OK(cuEventSynchronize(all));

    OK(launch_spin(work, a, device_address(second)));
    OK(cuEventRecord(one, a));
    OK(cuCtxWaitEvent(work->ctx, one));
    later = new_stream(CU_STREAM_NON_BLOCKING);
    OK(cuMemsetD32Async(words, 2, 1, b));
    OK(cuMemsetD32Async(words + 4, 3, 1, later)); /* a stream made after the call waits too */
    FAILS(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
    FAILS(cuStreamQuery(later), CUDA_ERROR_NOT_READY);
    *second = 1;
    OK(cuCtxSynchronize());
    assert_int_equal(word_at(words, b), 2);
    assert_int_equal(word_at(words + 4, b), 3);
    FAILS(cuCtxRecordEvent((CUcontext)0x10, all), CUDA_ERROR_INVALID_CONTEXT);
}

struct call {
    atomic_int count;
    atomic_int seen; /* the word, as the call found it */
    CUresult inside;
    uint32_t *word;
    pthread_t thread;
};

static void host_function(void *data)
{
    struct call *call = data;
    CUstream stream;

    call->thread = pthread_self();
    call->inside = cuStreamCreate(&stream, 0);
    call->seen = (int)*call->word;
    call->count++;
}

static void test_host_function(void **state)
{
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    struct call call = {.word = new_flag()};
    CUdeviceptr word = device_address(call.word);

    OK(cuMemsetD32Async(word, 5, 1, stream));
    OK(cuLaunchHostFunc(stream, host_function, &call));
    OK(cuMemsetD32Async(word, 6, 1, stream));
    OK(cuStreamSynchronize(stream));
    assert_int_equal(call.count, 1);
    assert_int_equal(call.seen, 5);
    assert_int_equal(call.inside, CUDA_ERROR_NOT_PERMITTED);
    assert_false(pthread_equal(call.thread, pthread_self()));
    assert_int_equal(*call.word, 6);
    FAILS(cuLaunchHostFunc(stream, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* A function that waits for the host must not stop calls that do not wait for it. */
static void blocking_function(void *data)
{
    atomic_int *go = data;

    while (*go == 0) {
        usleep(1000);
    }
}

static void test_host_function_that_waits(void **state)
{
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(0);
    CUdeviceptr words = new_words(1);
    atomic_int go = 0;

    OK(cuLaunchHostFunc(stream, blocking_function, &go));
    FAILS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    OK(cuMemsetD32Async(words, 9, 1, other));
    assert_int_equal(word_at(words, other), 9);
    FAILS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    go = 1;
    OK(cuStreamSynchronize(stream));
}

static atomic_int callback_status;

static void stream_callback(CUstream stream, CUresult status, void *data)
{
    callback_status = (int)status;
    *(CUstream *)data = stream;
}

static void test_stream_callback(void **state)
{
    CUstream stream = new_stream(0), seen = NULL;

    callback_status = -1;
    OK(cuStreamAddCallback(stream, stream_callback, &seen, 0));
    OK(cuStreamSynchronize(stream));
    assert_int_equal(callback_status, CUDA_SUCCESS);
    assert_ptr_equal(seen, stream);
    FAILS(cuStreamAddCallback(stream, stream_callback, &seen, 1), CUDA_ERROR_INVALID_VALUE);
}

/* After an error callbacks are called with it, host functions are not called. */
static void test_callbacks_after_an_error(void **state)
{
    const struct work *work = *state;
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), seen = NULL;
    struct call call = {.word = new_flag()};
    uint32_t *flag = new_flag();
    CUdeviceptr words;

    OK(cuMemAlloc(&words, 64));
    callback_status = -1;
    OK(launch_spin(work, stream, device_address(flag)));
    OK(cuLaunchHostFunc(stream, host_function, &call));
    OK(cuStreamAddCallback(stream, stream_callback, &seen, 0));
    launch_fill(work, NULL, words, 1 << 30, 0); /* far beyond the allocation */
    FAILS(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    for (int i = 0; i < 1000 && callback_status == -1; i++) {
        usleep(1000);
        cuStreamQuery(stream);
    }
    assert_int_equal(callback_status, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(call.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORK_TEST(test_flags_and_handles),
        WORK_TEST(test_record_and_query),
        WORK_TEST(test_record_overwrites),
        WORK_TEST(test_event_orders_streams),
        WORK_TEST(test_elapsed_time),
        WORK_TEST(test_events_and_contexts),
        WORK_TEST(test_whole_context),
        WORK_TEST(test_host_function),
        WORK_TEST(test_host_function_that_waits),
        WORK_TEST(test_stream_callback),
        WORK_TEST(test_callbacks_after_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
