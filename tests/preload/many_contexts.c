/* Memory that was freed is used again while a device has many contexts, and after they are gone.
 *
 * Argument: how many contexts there are at once. Some are destroyed while a capture is open. */
#include <cuda.h>
#include <stddef.h>

#include "check.h"

enum { MOST = 256, ROUNDS = 30, BYTES = 16 << 20 };

static CUcontext contexts[MOST];
static CUcontext first;

static void allocate_and_free(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        CUdeviceptr block;

        MUST(cuMemAlloc(&block, BYTES));
        MUST(cuMemsetD8(block, 1, BYTES));
        MUST(cuMemFree(block));
    }
}

static void create(int count)
{
    for (int i = 0; i < count; i++) {
        MUST(cuCtxCreate(&contexts[i], NULL, 0, 0));
    }
    MUST(cuCtxSetCurrent(first));
}

static void destroy(int begin, int end)
{
    for (int i = begin; i < end; i++) {
        MUST(cuCtxDestroy(contexts[i]));
    }
}

/* Half of the contexts go while a capture is open. */
static void destroy_in_capture(int count)
{
    CUstream stream;
    CUgraph graph;

    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    destroy(0, count / 2);
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphDestroy(graph));
    MUST(cuStreamDestroy(stream));
    destroy(count / 2, count);
}

int main(int argc, char **argv)
{
    int count = argc == 2 ? (int)strtol(argv[1], NULL, 10) : 0;

    HOLD(count > 0 && count <= MOST);
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&first, 0));
    MUST(cuCtxSetCurrent(first));
    create(count);
    allocate_and_free();
    destroy(0, count);
    allocate_and_free();
    create(count);
    destroy_in_capture(count);
    allocate_and_free();
    return 0;
}
