/* Calls beside a capture in the global mode, by another thread: which are refused, and which break
 * the capture. Each is made in the thread's usual mode, and in the relaxed one. */
#include <pthread.h>
#include <stdio.h>

#include "memory.h"
#include "sections.h"

#define BYTES (2 * MIB)

static struct {
    CUstream captured, other;
    CUevent event;
    CUdeviceptr block; /* plain memory */
    CUdeviceptr range; /* addresses for one chunk */
    CUmemGenericAllocationHandle chunk;
} things;

static CUresult try_create(void)
{
    CUmemAllocationProp properties = memory_properties(ON_DEVICE);

    things.chunk = 0;
    return cuMemCreate(&things.chunk, BYTES, &properties, 0);
}

static CUresult try_map(void)
{
    return cuMemMap(things.range, BYTES, 0, things.chunk, 0);
}

static CUresult try_set_access(void)
{
    CUmemAccessDesc access = memory_access();

    return cuMemSetAccess(things.range, BYTES, &access, 1);
}

static CUresult try_unmap(void)
{
    return cuMemUnmap(things.range, BYTES);
}

static CUresult try_release(void)
{
    return cuMemRelease(things.chunk);
}

static CUresult try_memset(void)
{
    return cuMemsetD8Async(things.block, 0, BYTES, things.other);
}

static CUresult try_record(void)
{
    return cuEventRecord(things.event, things.other);
}

static CUresult try_query(void)
{
    CUresult result = cuEventQuery(things.event);

    return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}

static CUresult try_query_stream(void)
{
    CUresult result = cuStreamQuery(things.other);

    return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}

static CUresult try_alloc(void)
{
    CUdeviceptr address;
    CUresult result = cuMemAlloc(&address, BYTES);

    return result == CUDA_SUCCESS ? cuMemFree(address) : result;
}

static CUresult try_alloc_async(void)
{
    CUdeviceptr address;
    CUresult result = cuMemAllocAsync(&address, BYTES, things.other);

    return result == CUDA_SUCCESS ? cuMemFreeAsync(address, things.other) : result;
}

static CUresult try_synchronize(void)
{
    return cuStreamSynchronize(things.other);
}

/* In this order each finds what it needs, if those before it succeed. */
static const struct call {
    const char *name;
    CUresult (*make)(void);
} calls[] = {
    {"cuMemCreate", try_create},
    {"cuMemMap", try_map},
    {"cuMemSetAccess", try_set_access},
    {"cuMemUnmap", try_unmap},
    {"cuMemRelease", try_release},
    {"cuMemsetD8Async", try_memset},
    {"cuEventRecord", try_record},
    {"cuEventQuery", try_query},
    {"cuStreamQuery", try_query_stream},
    {"cuMemAlloc and cuMemFree", try_alloc},
    {"cuMemAllocAsync and cuMemFreeAsync", try_alloc_async},
    {"cuStreamSynchronize", try_synchronize},
};

/* A call by a thread in that mode, and its result. */
struct attempt {
    const struct call *call;
    CUstreamCaptureMode mode;
    CUresult result;
};

static void *make(void *argument)
{
    struct attempt *attempt = argument;
    CUstreamCaptureMode mode = attempt->mode;

    MUST(cuCtxSetCurrent(probe.context));
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    attempt->result = attempt->call->make();
    return NULL;
}

/* Makes the call beside a capture of a memset, and tells how both end. */
static void show(const struct call *call, CUstreamCaptureMode mode)
{
    static const char *const modes[] = {
        [CU_STREAM_CAPTURE_MODE_GLOBAL] = "global", [CU_STREAM_CAPTURE_MODE_RELAXED] = "relaxed"};
    struct attempt attempt = {.call = call, .mode = mode};
    CUgraph graph = NULL;
    pthread_t thread;
    char subject[96];

    MUST(cuStreamBeginCapture(things.captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
    MUST(cuMemsetD8Async(things.block, 1, BYTES, things.captured));
    pthread_create(&thread, NULL, make, &attempt);
    pthread_join(thread, NULL);
    CUresult end = cuStreamEndCapture(things.captured, &graph);
    snprintf(subject, sizeof(subject), "%s, %s mode", call->name, modes[mode]);
    probe_note("figure", subject, "%s; the capture ends with %s", probe_error(attempt.result),
               probe_error(end));
    if (graph != NULL) {
        MUST(cuGraphDestroy(graph));
    }
}

void section_capture(const char *argument)
{
    static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_RELAXED,
                                                CU_STREAM_CAPTURE_MODE_GLOBAL};

    MUST(cuStreamCreate(&things.captured, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&things.other, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&things.event, CU_EVENT_DISABLE_TIMING));
    MUST(cuMemAlloc(&things.block, BYTES));
    things.range = memory_reserve(BYTES);
    for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
        for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
            show(&calls[i], modes[m]);
        }
    }
    MUST(cuMemFree(things.block));
}
