/* Work of one device that uses memory of another one, which has to make room meanwhile: the memory
 * must stay in its place until the work is done.
 *
 *     across WAY     peer, plain, host, row or graph: how device 0 uses the memory
 *
 * Device 0 waits for a flag, and then copies from a block of device 1. While it waits, device 1
 * gets more blocks than it has room for. Prints how many there were, and if the content was right.
 */
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { BYTES = 8 * MIB, OTHER_BYTES = 7 * MIB, OTHERS = 9 };

static CUcontext contexts[2];
static CUstream stream; /* of device 0 */
static CUdeviceptr to, from;
static unsigned char *host;

static void peer(void)
{
    MUST(cuMemcpyPeerAsync(to, contexts[0], from, contexts[1], BYTES, stream));
}

/* Becomes a peer copy where device 0 has no access. */
static void plain(void)
{
    MUST(cuMemcpyAsync(to, from, BYTES, stream));
}

/* A stream of device 0, on which nothing is allocated, copies memory of device 1 to the host. */
static void to_host(void)
{
    MUST(cuMemcpyDtoHAsync(host, from, BYTES, stream));
}

static void row(void)
{
    const CUDA_MEMCPY3D_PEER copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                     .srcDevice = from,
                                     .srcContext = contexts[1],
                                     .srcPitch = BYTES,
                                     .srcHeight = 1,
                                     .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                     .dstDevice = to,
                                     .dstContext = contexts[0],
                                     .dstPitch = BYTES,
                                     .dstHeight = 1,
                                     .WidthInBytes = BYTES,
                                     .Height = 1,
                                     .Depth = 1};

    MUST(cuMemcpy3DPeerAsync(&copy, stream));
}

static void graph(void)
{
    CUgraph captured;
    CUgraphExec executable;

    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    peer();
    MUST(cuStreamEndCapture(stream, &captured));
    MUST(cuGraphInstantiate(&executable, captured, 0));
    MUST(cuGraphLaunch(executable, stream));
}

static const struct {
    const char *name;
    void (*copy)(void);
} ways[] = {{"peer", peer}, {"plain", plain}, {"host", to_host}, {"row", row}, {"graph", graph}};

static bool is_right(const unsigned char *bytes)
{
    for (size_t i = 0; i < BYTES; i++) {
        if (bytes[i] != 7) {
            return false;
        }
    }
    return true;
}

static bool copy_by(const char *name)
{
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (strcmp(name, ways[i].name) == 0) {
            ways[i].copy();
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    CUdeviceptr others[OTHERS];
    uint32_t *flag;
    int count = 0;

    if (argc != 2) {
        return 2;
    }
    MUST(cuInit(0));
    for (int i = 0; i < 2; i++) {
        MUST(cuDevicePrimaryCtxRetain(&contexts[i], i));
    }
    MUST(cuCtxSetCurrent(contexts[1]));
    MUST(cuMemAlloc(&from, BYTES));
    MUST(cuMemsetD8(from, 7, BYTES));
    MUST(cuCtxSetCurrent(contexts[0]));
    if (strcmp(argv[1], "host") != 0) {
        MUST(cuMemAlloc(&to, BYTES));
    }
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemHostAlloc((void **)&flag, sizeof(*flag), 0));
    MUST(cuMemHostAlloc((void **)&host, BYTES, 0));
    *flag = 0;

    MUST(cuStreamWaitValue32(stream, (CUdeviceptr)(uintptr_t)flag, 1, CU_STREAM_WAIT_VALUE_EQ));
    if (!copy_by(argv[1])) {
        return 2;
    }
    MUST(cuCtxSetCurrent(contexts[1]));
    while (count < OTHERS && cuMemAlloc(&others[count], OTHER_BYTES) == CUDA_SUCCESS) {
        MUST(cuMemsetD8Async(others[count++], 1, OTHER_BYTES, NULL));
    }
    MUST(cuCtxSetCurrent(contexts[0]));
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    MUST(cuStreamSynchronize(stream));
    if (strcmp(argv[1], "host") != 0) {
        MUST(cuMemcpyDtoH(host, to, BYTES));
    }
    printf("%d other blocks, content %s\n", count, is_right(host) ? "right" : "wrong");
    return 0;
}
