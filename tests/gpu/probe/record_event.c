/* cuCtxRecordEvent: an event for all work of a context. */
#include <stdio.h>

#include "kernels.h"
#include "memory.h"
#include "sections.h"

#define STREAMS_MAX 96
#define SPIN        300e3

typedef CUresult (*record_fn)(CUcontext context, CUevent event);

static record_fn record;
static CUevent event;
static CUstream streams[STREAMS_MAX];

static void show_cost(size_t count, bool busy)
{
    const size_t repeat = probe_repeat(busy ? 200 : 2000);
    char subject[96];

    if (busy) {
        kernels_spin(streams[0], SPIN);
    }
    double begin = probe_now();
    for (size_t i = 0; i < repeat; i++) {
        MUST(record(probe.context, event));
    }
    double each = (probe_now() - begin) / (double)repeat;
    if (busy) {
        kernels_release(streams[0]);
    }
    snprintf(subject, sizeof(subject), "cuCtxRecordEvent, %zu streams%s", count,
             busy ? ", one busy" : "");
    probe_time(subject, each, "us");
    MUST(cuCtxSynchronize());
}

/* The event must wait for a kernel that was submitted before it, and for nothing after it. */
static void check_meaning(CUstream stream, const char *what)
{
    char subject[96];

    kernels_spin(stream, SPIN);
    CUresult result = record(probe.context, event);
    if (result != CUDA_SUCCESS) {
        kernels_release(stream);
        probe_note("failed", what, "%s", probe_error(result));
        return;
    }
    CUresult before = cuEventQuery(event);
    kernels_release(stream);
    MUST(cuEventSynchronize(event));
    snprintf(subject, sizeof(subject), "the event waits for %s", what);
    probe_verdict(before == CUDA_ERROR_NOT_READY, subject, probe_error(before));

    kernels_spin(stream, SPIN);
    before = cuEventQuery(event);
    kernels_release(stream);
    snprintf(subject, sizeof(subject), "and not for later work in %s", what);
    probe_verdict(before == CUDA_SUCCESS, subject, probe_error(before));
}

/* A graph with one kernel that spins. */
static void check_graph(void)
{
    CUgraph graph;
    CUgraphExec exec;

    MUST(cuStreamBeginCapture(streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CUdeviceptr scratch;
    CUresult result = cuMemAllocAsync(&scratch, MIB, streams[0]);
    if (result == CUDA_SUCCESS) {
        kernels_fill(scratch, MIB / 4, 1, streams[0]);
        MUST(cuMemFreeAsync(scratch, streams[0]));
    }
    MUST(cuStreamEndCapture(streams[0], &graph));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    kernels_spin(streams[0], SPIN);
    MUST(cuGraphLaunch(exec, streams[0]));
    MUST(record(probe.context, event));
    CUresult before = cuEventQuery(event);
    kernels_release(streams[0]);
    MUST(cuEventSynchronize(event));
    probe_verdict(before == CUDA_ERROR_NOT_READY, "the event waits for a graph behind a kernel",
                  probe_error(before));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
}

/* A stream that captures must not be disturbed. */
static void check_capture(void)
{
    CUgraph graph = NULL;

    MUST(cuStreamBeginCapture(streams[1], CU_STREAM_CAPTURE_MODE_RELAXED));
    CUresult result = record(probe.context, event);
    CUresult end = cuStreamEndCapture(streams[1], &graph);
    probe_note("figure", "cuCtxRecordEvent beside a capture", "%s; the capture ends with %s",
               probe_error(result), probe_error(end));
    if (graph != NULL) {
        MUST(cuGraphDestroy(graph));
    }
}

void section_record_event(const char *argument)
{
    static const size_t counts[] = {1, 32, STREAMS_MAX};
    size_t made = 0;

    record = (record_fn)probe_symbol("cuCtxRecordEvent");
    if (record == NULL) {
        probe_note("skipped", "cuCtxRecordEvent", "this driver lacks it");
        return;
    }
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        while (made < counts[i]) {
            MUST(cuStreamCreate(&streams[made++], CU_STREAM_NON_BLOCKING));
        }
        show_cost(made, false);
        show_cost(made, true);
    }
    check_meaning(streams[7], "a stream that does not block");
    check_meaning(NULL, "the NULL stream");
    check_meaning(CU_STREAM_PER_THREAD, "the thread's own stream");
    check_graph();
    check_capture();
}
