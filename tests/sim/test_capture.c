/* Stream capture: the state machine, modes and prohibited calls, fork and join. */
#include "work.h"

#include <pthread.h>

#define GLOBAL       CU_STREAM_CAPTURE_MODE_GLOBAL
#define THREAD_LOCAL CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
#define RELAXED      CU_STREAM_CAPTURE_MODE_RELAXED

static CUstreamCaptureStatus status_of(CUstream stream)
{
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)99;

    OK(cuStreamIsCapturing(stream, &status));
    return status;
}

#define NONE        CU_STREAM_CAPTURE_STATUS_NONE
#define ACTIVE      CU_STREAM_CAPTURE_STATUS_ACTIVE
#define INVALIDATED CU_STREAM_CAPTURE_STATUS_INVALIDATED

/* Ends a capture that was invalidated. */
static void end_invalidated(CUstream stream)
{
    CUgraph graph = (CUgraph)0x10;

    assert_int_equal(status_of(stream), INVALIDATED);
    FAILS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_null(graph);
    assert_int_equal(status_of(stream), NONE);
}

static void test_captured_work_does_not_run(void **state)
{
    const struct work *work = *state;
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(0);
    CUdeviceptr words = new_words(4);
    CUgraph graph = NULL;
    size_t count = 0;

    assert_int_equal(status_of(stream), NONE);
    OK(cuStreamBeginCapture(stream, GLOBAL));
    assert_int_equal(status_of(stream), ACTIVE);
    assert_int_equal(status_of(other), NONE);
    OK(launch_fill(work, stream, words, 4, 1));
    OK(cuMemsetD32Async(words, 2, 2, stream));
    OK(cuMemcpyDtoDAsync(words + 8, words, 4, stream));
    OK(cuStreamEndCapture(stream, &graph));
    assert_int_equal(status_of(stream), NONE);

    assert_int_equal(word_at(words, other), 0);
    OK(cuGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 3);
    OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
    assert_int_equal(count, 2);
    OK(cuGraphDestroy(graph));
}

static void test_begin_and_end_rules(void **state)
{
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(0);
    CUgraph graph = NULL;

    FAILS(cuStreamBeginCapture(NULL, GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    FAILS(cuStreamBeginCapture(stream, (CUstreamCaptureMode)7), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
    OK(cuStreamBeginCapture(stream, GLOBAL));
    FAILS(cuStreamBeginCapture(stream, GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
    FAILS(cuStreamEndCapture(stream, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuStreamEndCapture(other, &graph), CUDA_ERROR_ILLEGAL_STATE);
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphDestroy(graph));
    FAILS(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
}

static void test_capture_info(void **state)
{
    const CUgraphNode *dependencies = NULL;
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr words = new_words(4);
    CUstreamCaptureStatus status;
    cuuint64_t first_id = 0, second_id = 0;
    CUgraph graph = NULL, captured = NULL;
    CUgraphNodeType type;
    size_t count = 9;

    OK(cuStreamBeginCapture(stream, RELAXED));
    OK(cuStreamGetCaptureInfo(stream, &status, &first_id, &graph, &dependencies, NULL, &count));
    assert_int_equal(status, ACTIVE);
    assert_int_equal(count, 0);
    OK(cuMemsetD32Async(words, 2, 2, stream));
    OK(cuStreamGetCaptureInfo(stream, &status, &second_id, &graph, &dependencies, NULL, &count));
    assert_int_equal(second_id, first_id);
    assert_int_equal(count, 1);
    OK(cuGraphNodeGetType(dependencies[0], &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_MEMSET);

    OK(cuStreamUpdateCaptureDependencies(stream, NULL, NULL, 0,
                                         CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    OK(cuMemsetD32Async(words, 3, 2, stream));
    FAILS(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamEndCapture(stream, &captured));
    assert_ptr_equal(captured, graph);
    OK(cuGraphGetRootNodes(graph, NULL, &count));
    assert_int_equal(count, 2); /* the second does not depend on the first */
    OK(cuGraphDestroy(graph));

    OK(cuStreamBeginCapture(stream, RELAXED));
    OK(cuStreamGetCaptureInfo(stream, &status, &second_id, NULL, NULL, NULL, NULL));
    assert_int_not_equal(second_id, first_id);
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphDestroy(graph));
    FAILS(cuStreamUpdateCaptureDependencies(stream, NULL, NULL, 0, 0), CUDA_ERROR_ILLEGAL_STATE);
}

/* Asking or waiting for a capturing stream conflicts with the capture in every mode. */
static void test_conflicting_calls(void **state)
{
    const struct work *work = *state;
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr words = new_words(1);
    CUevent event = new_event(0);
    CUstreamCaptureMode mode = RELAXED;

    OK(cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, GLOBAL);

    OK(cuStreamBeginCapture(stream, RELAXED));
    FAILS(cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_invalidated(stream);

    OK(cuStreamBeginCapture(stream, RELAXED));
    FAILS(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    FAILS(cuMemsetD32Async(words, 0, 1, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    end_invalidated(stream);

    OK(cuStreamBeginCapture(stream, RELAXED));
    OK(cuEventRecord(event, stream));
    FAILS(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
    end_invalidated(stream);
    FAILS(cuEventSynchronize(event), CUDA_ERROR_CAPTURED_EVENT);
    OK(cuEventRecord(event, stream)); /* recorded outside again */
    OK(cuEventSynchronize(event));

    OK(cuStreamBeginCapture(stream, RELAXED));
    FAILS(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_invalidated(stream);

    OK(cuStreamBeginCapture(stream, RELAXED));
    FAILS(cuCtxRecordEvent(work->ctx, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_invalidated(stream);

    OK(cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, RELAXED);
}

/* Calls that cuda.h names potentially unsafe. */
static CUresult unsafe_call(void)
{
    CUdeviceptr address = 0;
    CUresult result = cuMemAlloc(&address, 100);

    if (result == CUDA_SUCCESS) {
        OK(cuMemFree(address));
    }
    return result;
}

static void test_modes_on_the_capturing_thread(void **state)
{
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUstream other = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = new_event(0);
    CUstreamCaptureMode mode;
    CUdeviceptr block;
    CUmodule module;
    CUgraph graph;

    OK(cuStreamBeginCapture(stream, RELAXED));
    OK(unsafe_call());
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphDestroy(graph));

    OK(cuStreamBeginCapture(stream, THREAD_LOCAL));
    FAILS(unsafe_call(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_invalidated(stream);

    OK(cuStreamBeginCapture(stream, GLOBAL));
    FAILS(cuEventQuery(event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_invalidated(stream);

    OK(cuStreamBeginCapture(stream, GLOBAL));
    FAILS(cuModuleLoadData(&module, ""), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_invalidated(stream);

    OK(cuStreamBeginCapture(stream, GLOBAL));
    FAILS(cuMemAllocAsync(&block, 4096, other), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_invalidated(stream);

    OK(cuStreamBeginCapture(stream, GLOBAL));
    mode = RELAXED; /* how a library makes such a call all the same */
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    OK(unsafe_call());
    OK(cuEventQuery(event));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphDestroy(graph));
    mode = (CUstreamCaptureMode)5;
    FAILS(cuThreadExchangeStreamCaptureMode(&mode), CUDA_ERROR_INVALID_VALUE);
}

struct other_thread {
    CUcontext ctx;
    CUstreamCaptureMode mode;
    CUstream ends;
    CUresult result;
};

static void *call_on_other_thread(void *data)
{
    struct other_thread *other = data;
    CUgraph graph;

    cuCtxSetCurrent(other->ctx);
    cuThreadExchangeStreamCaptureMode(&other->mode);
    if (other->ends != NULL) {
        other->result = cuStreamEndCapture(other->ends, &graph);
    } else {
        other->result = unsafe_call();
    }
    return NULL;
}

static CUresult elsewhere(const struct work *work, CUstreamCaptureMode mode, CUstream ends)
{
    struct other_thread other = {work->ctx, mode, ends, CUDA_ERROR_UNKNOWN};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, call_on_other_thread, &other), 0);
    pthread_join(thread, NULL);
    return other.result;
}

static void test_modes_on_other_threads(void **state)
{
    const struct work *work = *state;
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUgraph graph;

    OK(cuStreamBeginCapture(stream, GLOBAL));
    OK(elsewhere(work, THREAD_LOCAL, NULL));
    OK(elsewhere(work, RELAXED, NULL));
    assert_int_equal(status_of(stream), ACTIVE);
    FAILS(elsewhere(work, GLOBAL, NULL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    end_invalidated(stream);

    OK(cuStreamBeginCapture(stream, THREAD_LOCAL));
    OK(elsewhere(work, GLOBAL, NULL));
    FAILS(elsewhere(work, GLOBAL, stream), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    assert_int_equal(status_of(stream), ACTIVE);
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphDestroy(graph));

    OK(cuStreamBeginCapture(stream, RELAXED));
    OK(elsewhere(work, GLOBAL, stream));
    assert_int_equal(status_of(stream), NONE);
}

/* A legacy stream would have to wait for a capturing blocking stream. */
static void test_legacy_stream(void **state)
{
    CUstream blocking = new_stream(0), exempt = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr words = new_words(1);
    CUstreamCaptureStatus status;
    CUgraph graph;

    OK(cuStreamBeginCapture(blocking, RELAXED));
    FAILS(cuStreamIsCapturing(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    FAILS(cuStreamGetCaptureInfo(NULL, &status, NULL, NULL, NULL, NULL, NULL),
          CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    assert_int_equal(status_of(blocking), ACTIVE); /* asking does no harm */
    FAILS(cuMemsetD32Async(words, 1, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    end_invalidated(blocking);

    OK(cuStreamBeginCapture(exempt, RELAXED));
    OK(cuMemsetD32Async(words, 1, 1, NULL));
    OK(cuStreamEndCapture(exempt, &graph));
    OK(cuGraphDestroy(graph));
}

static void test_fork_and_join(void **state)
{
    CUstream origin = new_stream(CU_STREAM_NON_BLOCKING), side = new_stream(0);
    CUevent fork = new_event(CU_EVENT_DISABLE_TIMING), join = new_event(CU_EVENT_DISABLE_TIMING);
    CUdeviceptr words = new_words(4);
    CUgraph graph = NULL;
    size_t count;

    OK(cuStreamBeginCapture(origin, GLOBAL));
    OK(cuMemsetD32Async(words, 1, 1, origin));
    OK(cuEventRecord(fork, origin));
    OK(cuStreamWaitEvent(side, fork, 0));
    assert_int_equal(status_of(side), ACTIVE);
    OK(cuMemsetD32Async(words + 4, 2, 1, side));
    OK(cuMemsetD32Async(words + 8, 3, 1, origin));
    OK(cuEventRecord(join, side));
    OK(cuStreamWaitEvent(origin, join, 0));
    OK(cuMemsetD32Async(words + 12, 4, 1, origin));
    FAILS(cuStreamWaitEvent(new_stream(0), new_event(0), CU_EVENT_WAIT_EXTERNAL),
          CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamEndCapture(origin, &graph));
    assert_int_equal(status_of(side), NONE);
    OK(cuGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 4);
    OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
    assert_int_equal(count, 4);
    OK(cuGraphDestroy(graph));
    FAILS(cuStreamWaitEvent(origin, join, 0), CUDA_ERROR_CAPTURED_EVENT);
}

static void test_fork_without_join(void **state)
{
    CUstream origin = new_stream(CU_STREAM_NON_BLOCKING), side = new_stream(0);
    CUevent fork = new_event(CU_EVENT_DISABLE_TIMING);
    CUdeviceptr words = new_words(4);
    CUgraph graph = NULL;

    OK(cuStreamBeginCapture(origin, GLOBAL));
    OK(cuEventRecord(fork, origin));
    OK(cuStreamWaitEvent(side, fork, 0));
    OK(cuMemsetD32Async(words, 2, 1, side));
    FAILS(cuStreamEndCapture(origin, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    assert_null(graph);
    assert_int_equal(status_of(origin), NONE);
    assert_int_equal(status_of(side), NONE);

    OK(cuStreamBeginCapture(origin, GLOBAL)); /* a stream that captured nothing needs no join */
    OK(cuMemsetD32Async(words, 2, 1, origin));
    OK(cuEventRecord(fork, origin));
    OK(cuStreamWaitEvent(side, fork, 0));
    FAILS(cuStreamEndCapture(side, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    end_invalidated(origin);

    OK(cuStreamBeginCapture(origin, GLOBAL));
    OK(cuMemsetD32Async(words, 2, 1, origin));
    OK(cuEventRecord(fork, origin));
    OK(cuStreamWaitEvent(side, fork, 0));
    OK(cuStreamEndCapture(origin, &graph));
    OK(cuGraphDestroy(graph));
}

static void test_captures_do_not_mix(void **state)
{
    CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent outside = new_event(0), inside = new_event(0), never = new_event(0);
    CUgraph graph;

    OK(cuEventRecord(outside, b));
    OK(cuStreamBeginCapture(a, RELAXED));
    OK(cuStreamWaitEvent(a, never, 0)); /* stands for no work at all */
    FAILS(cuStreamWaitEvent(a, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    end_invalidated(a);

    OK(cuStreamBeginCapture(a, RELAXED));
    OK(cuStreamBeginCapture(b, RELAXED));
    OK(cuEventRecord(inside, a));
    FAILS(cuStreamWaitEvent(b, inside, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    end_invalidated(a);
    end_invalidated(b);

    OK(cuStreamBeginCapture(a, RELAXED)); /* an external wait becomes a node */
    OK(cuStreamWaitEvent(a, outside, CU_EVENT_WAIT_EXTERNAL));
    OK(cuEventRecordWithFlags(outside, a, CU_EVENT_RECORD_EXTERNAL));
    OK(cuStreamEndCapture(a, &graph));
    OK(cuGraphDestroy(graph));
}

static void test_streams_destroyed_while_capturing(void **state)
{
    CUstream origin = new_stream(CU_STREAM_NON_BLOCKING), side = new_stream(0);
    CUevent fork = new_event(0);

    OK(cuStreamBeginCapture(origin, RELAXED));
    OK(cuEventRecord(fork, origin));
    OK(cuStreamWaitEvent(side, fork, 0));
    OK(cuStreamDestroy(side));
    end_invalidated(origin);
    OK(cuStreamBeginCapture(origin, GLOBAL));
    OK(cuStreamDestroy(origin));
    OK(unsafe_call()); /* the capture went with its stream */
}

static void test_capture_into_a_graph(void **state)
{
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr words = new_words(2);
    CUgraph graph, captured = NULL;
    CUgraphNode first;
    size_t count;

    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddEmptyNode(&first, graph, NULL, 0));
    OK(cuStreamBeginCaptureToGraph(stream, graph, &first, NULL, 1, GLOBAL));
    OK(cuMemsetD32Async(words, 2, 1, stream));
    OK(cuStreamEndCapture(stream, &captured));
    assert_ptr_equal(captured, graph);
    OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
    assert_int_equal(count, 1);
    OK(cuGraphDestroy(graph));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORK_TEST(test_captured_work_does_not_run),
        WORK_TEST(test_begin_and_end_rules),
        WORK_TEST(test_capture_info),
        WORK_TEST(test_conflicting_calls),
        WORK_TEST(test_modes_on_the_capturing_thread),
        WORK_TEST(test_modes_on_other_threads),
        WORK_TEST(test_legacy_stream),
        WORK_TEST(test_fork_and_join),
        WORK_TEST(test_fork_without_join),
        WORK_TEST(test_captures_do_not_mix),
        WORK_TEST(test_streams_destroyed_while_capturing),
        WORK_TEST(test_capture_into_a_graph),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
