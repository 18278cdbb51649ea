/* Calls that the driver refuses, and calls during a capture: what was counted before is not, and
 * what could not be freed is still there. Argument: what to do.
 *
 * alloc, async, pool, pitch: allocates 40 MiB twice; SPILLWAY_SIM_FAIL makes the first fail.
 * free, free-async: frees 40 MiB twice, with an allocation in between; the first free fails.
 * begin: begins a capture, which fails, and then allocates.
 * capture: begins a capture twice, and frees a block from before it.
 * captures: ends one of two captures, and allocates on the stream of the other.
 * end: ends a capture, which the driver refuses at first, and allocates on its stream meanwhile and
 *     afterwards.
 * reset: resets and releases the primary context of a device that has none.
 * streams: lets a stream of another device have the handle of one that is gone.
 * destroy: destroys a context whose work is under way, with its memory. */
#include <cuda.h>
#include <string.h>

#include "check.h"

int spillway_sim_fail(const char *list); /* of the simulated driver */

enum { BYTES = 40 << 20, MOST = 1000 };

static CUstream stream;

static const char *name_of(CUresult result)
{
    const char *name = "?";

    (void)cuGetErrorName(result, &name);
    return name;
}

static CUresult allocate(const char *how, CUdeviceptr *ret_block)
{
    CUmemoryPool pool;
    size_t pitch;

    if (strcmp(how, "async") == 0) {
        return cuMemAllocAsync(ret_block, BYTES, stream);
    }
    if (strcmp(how, "pool") == 0) {
        MUST(cuDeviceGetDefaultMemPool(&pool, 0));
        return cuMemAllocFromPoolAsync(ret_block, BYTES, pool, stream);
    }
    return strcmp(how, "pitch") == 0 ? cuMemAllocPitch(ret_block, &pitch, 4096, BYTES / 4096, 4)
                                     : cuMemAlloc(ret_block, BYTES);
}

static void allocate_twice(const char *how)
{
    CUdeviceptr block = 0;

    SHOW(name_of, allocate(how, &block));
    SHOW(name_of, allocate(how, &block));
    SHOW(name_of, cuMemFree(block));
}

static void free_twice(int async)
{
    CUdeviceptr block = 0, other = 0;

    MUST(cuMemAlloc(&block, BYTES));
    SHOW(name_of, async ? cuMemFreeAsync(block, stream) : cuMemFree(block));
    SHOW(name_of, cuMemAlloc(&other, BYTES));
    SHOW(name_of, cuMemFree(block));
    SHOW(name_of, cuMemAlloc(&other, BYTES));
    SHOW(name_of, cuMemFree(other));
}

static void begin(void)
{
    CUdeviceptr block = 0;

    SHOW(name_of, cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (int i = 0; i < 3; i++) {
        MUST(cuMemAllocAsync(&block, BYTES, stream));
        MUST(cuMemFreeAsync(block, stream));
    }
}

static void capture(void)
{
    CUdeviceptr block = 0, captured = 0, other = 0;
    CUgraph graph = NULL;
    unsigned char byte = 0;
    CUstream beside;

    MUST(cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAllocAsync(&block, BYTES, stream));
    MUST(cuMemsetD8Async(block, 7, BYTES, stream));
    MUST(cuStreamSynchronize(stream));
    SHOW(name_of, cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    SHOW(name_of, cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    SHOW(name_of, cuMemAllocAsync(&captured, BYTES, stream));
    SHOW(name_of, cuMemFreeAsync(captured, stream));
    SHOW(name_of, cuMemFreeAsync(block, stream));
    SHOW(name_of, cuMemAllocAsync(&other, BYTES, beside));
    MUST(cuMemsetD8Async(other, 9, BYTES, beside));
    MUST(cuMemFreeAsync(other, beside));
    SHOW(name_of, cuStreamEndCapture(stream, &graph));
    MUST(cuMemcpyDtoH(&byte, block + BYTES - 1, 1));
    printf("content: %d\n", byte);
    SHOW(name_of, cuMemFreeAsync(block, stream));
    SHOW(name_of, cuMemAllocAsync(&other, BYTES, stream));
    SHOW(name_of, cuMemFreeAsync(other, stream));
    if (graph != NULL) {
        MUST(cuGraphDestroy(graph));
    }
}

static void end(void)
{
    CUdeviceptr captured = 0, block = 0;
    CUgraph graph = NULL, none = NULL;

    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(spillway_sim_fail("cuStreamEndCapture:1:999"));
    SHOW(name_of, cuStreamEndCapture(stream, &graph));
    SHOW(name_of, cuMemAllocAsync(&captured, BYTES, stream));
    SHOW(name_of, cuStreamEndCapture(stream, &graph));
    SHOW(name_of, cuMemAllocAsync(&block, BYTES, stream));
    SHOW(name_of, cuMemFreeAsync(block, stream));
    SHOW(name_of, cuStreamEndCapture(stream, &none));
    MUST(cuGraphDestroy(graph));
}

/* Allocates on a stream of device 0, and on one of device 1 with the same handle. */
static void streams(void)
{
    CUstream first = NULL, second = NULL;
    CUdeviceptr block = 0;
    CUcontext other;
    int device = -1;

    MUST(cuCtxCreate(&other, NULL, 0, 1));
    MUST(cuCtxPopCurrent(&other));
    for (int i = 0; i < MOST && (first == NULL || first != second); i++) {
        MUST(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
        MUST(cuMemAllocAsync(&block, BYTES, first));
        MUST(cuMemFreeAsync(block, first));
        MUST(cuStreamDestroy(first));
        MUST(cuCtxPushCurrent(other));
        MUST(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
        MUST(cuMemAllocAsync(&block, BYTES, second));
        MUST(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, block));
        HOLD(device == 1);
        MUST(cuMemFreeAsync(block, second));
        MUST(cuStreamDestroy(second));
        MUST(cuCtxPopCurrent(&other));
    }
    printf("same handle: %s\n", first == second ? "yes" : "no");
    MUST(cuCtxDestroy(other));
}

/* The context is the only one of device 1, and then one of two of device 0. */
static void destroy(void)
{
    for (int device = 1; device >= 0; device--) {
        unsigned char *seen;
        CUdeviceptr block;
        CUcontext other;

        MUST(cuMemHostAlloc((void **)&seen, BYTES, CU_MEMHOSTALLOC_PORTABLE));
        memset(seen, 0, BYTES);
        MUST(cuCtxCreate(&other, NULL, 0, device));
        MUST(cuMemAlloc(&block, BYTES));
        for (int i = 0; i < 20; i++) {
            MUST(cuMemsetD8Async(block, (unsigned char)i, BYTES, NULL));
        }
        MUST(cuMemcpyDtoHAsync(seen, block, BYTES, NULL));
        SHOW(name_of, cuCtxDestroy(other));
        printf("work: %s\n", seen[BYTES - 1] == 19 ? "done" : "lost");
        SHOW(name_of, cuMemAlloc(&block, BYTES));
        SHOW(name_of, cuMemsetD8(block, 3, BYTES));
        SHOW(name_of, cuMemFree(block));
        MUST(cuMemFreeHost(seen));
    }
}

static void two_captures(void)
{
    CUdeviceptr captured = 0, block = 0;
    CUstream streams[2] = {stream};
    CUgraph graph;

    MUST(cuStreamCreate(&streams[1], CU_STREAM_NON_BLOCKING));
    for (int ended = 0; ended < 2; ended++) {
        for (int i = 0; i < 2; i++) {
            SHOW(name_of, cuStreamBeginCapture(streams[i], CU_STREAM_CAPTURE_MODE_RELAXED));
        }
        SHOW(name_of, cuStreamEndCapture(streams[ended], &graph));
        MUST(cuGraphDestroy(graph));
        SHOW(name_of, cuMemAllocAsync(&captured, BYTES, streams[1 - ended]));
        SHOW(name_of, cuMemFreeAsync(captured, streams[1 - ended]));
        SHOW(name_of, cuStreamEndCapture(streams[1 - ended], &graph));
        MUST(cuGraphDestroy(graph));
    }
    SHOW(name_of, cuMemAllocAsync(&block, BYTES, stream));
    SHOW(name_of, cuMemFreeAsync(block, stream));
    MUST(cuStreamSynchronize(stream));
}

int main(int argc, char **argv)
{
    CUcontext context = NULL;

    HOLD(argc == 2);
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (strncmp(argv[1], "free", 4) == 0) {
        free_twice(strcmp(argv[1], "free-async") == 0);
    } else if (strcmp(argv[1], "begin") == 0) {
        begin();
    } else if (strcmp(argv[1], "capture") == 0) {
        capture();
    } else if (strcmp(argv[1], "captures") == 0) {
        two_captures();
    } else if (strcmp(argv[1], "end") == 0) {
        end();
    } else if (strcmp(argv[1], "reset") == 0) {
        SHOW(name_of, cuDevicePrimaryCtxReset(1));
        SHOW(name_of, cuDevicePrimaryCtxRelease(1));
    } else if (strcmp(argv[1], "streams") == 0) {
        streams();
    } else if (strcmp(argv[1], "destroy") == 0) {
        destroy();
    } else {
        allocate_twice(argv[1]);
    }
    return 0;
}
