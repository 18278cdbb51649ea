/* Work of one device that uses memory of another one, which has to make room meanwhile: the memory
 * must stay in its place until the work is done.
 *
 *     across WAY     peer, plain, host, row, graph, kernel or freed: how device 0 uses the memory
 *
 * Device 0 waits for a flag, and then copies from a block of device 1, or adds 1 to each word of
 * it. While it waits, device 1 gets more blocks than it has room for. Prints how many there were,
 * and if the content was right. Where nothing is allocated on device 0 (host, kernel), its context
 * is only retained. freed: a graph is launched in another context than it was captured in; the
 * memory is freed then, and one more block may take its place.
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

static CUgraphExec executable;

static void make_graph(void)
{
    CUgraph captured;

    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    peer();
    MUST(cuStreamEndCapture(stream, &captured));
    MUST(cuGraphInstantiate(&executable, captured, 0));
}

static void launch_graph(void)
{
    MUST(cuGraphLaunch(executable, stream));
}

/* From now on everything is done in another context of device 0. */
static void make_graph_and_leave(void)
{
    make_graph();
    MUST(cuCtxCreate(&contexts[0], NULL, 0, 0));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

/* Device 0 has access by the memory pool. */
static void kernel(void)
{
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemoryPool pool;
    CUmodule module;
    CUfunction add;

    MUST(cuDeviceGetDefaultMemPool(&pool, 1));
    MUST(cuMemPoolSetAccess(pool, &access, 1));
    MUST(cuModuleLoadData(&module, "any image will do"));
    MUST(cuModuleGetFunction(&add, module, "spw_add"));
    launch_add(add, &from, BYTES / 4, stream);
}

static const struct {
    const char *name;
    void (*prepare)(void); /* before the stream waits */
    void (*use)(void);
    bool allocates; /* on device 0 */
    int others;
} ways[] = {
    {"peer", NULL, peer, true, OTHERS},
    {"plain", NULL, plain, true, OTHERS},
    {"host", NULL, to_host, false, OTHERS},
    {"row", NULL, row, true, OTHERS},
    {"graph", make_graph, launch_graph, true, OTHERS},
    {"kernel", NULL, kernel, false, OTHERS},
    {"freed", make_graph_and_leave, launch_graph, true, 1},
};

static bool is_right(const unsigned char *bytes)
{
    for (size_t i = 0; i < BYTES; i++) {
        if (bytes[i] != 7) {
            return false;
        }
    }
    return true;
}

/* The content of the block, as it was and with 1 added to each word. */
static bool is_right_after(const char *way)
{
    return strcmp(way, "kernel") == 0 ? count_wrong(from, BYTES / 4, 0x07070708) == 0
                                      : is_right(host);
}

int main(int argc, char **argv)
{
    CUdeviceptr others[OTHERS];
    uint32_t *flag;
    size_t way = 0;
    int count = 0;

    while (argc == 2 && way < sizeof(ways) / sizeof(ways[0]) &&
           strcmp(argv[1], ways[way].name) != 0) {
        way++;
    }
    if (argc != 2 || way == sizeof(ways) / sizeof(ways[0])) {
        return 2;
    }
    MUST(cuInit(0));
    for (int i = 0; i < 2; i++) {
        MUST(cuDevicePrimaryCtxRetain(&contexts[i], i));
    }
    MUST(cuCtxSetCurrent(contexts[1]));
    MUST(cuMemAlloc(&from, BYTES));
    MUST(cuMemsetD8(from, 7, BYTES));
    MUST(cuMemHostAlloc((void **)&flag, sizeof(*flag), CU_MEMHOSTALLOC_PORTABLE));
    MUST(cuMemHostAlloc((void **)&host, BYTES, CU_MEMHOSTALLOC_PORTABLE));
    *flag = 0;
    MUST(cuCtxSetCurrent(contexts[0]));
    if (ways[way].allocates) {
        MUST(cuMemAlloc(&to, BYTES));
    }
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (ways[way].prepare != NULL) {
        ways[way].prepare();
    }

    MUST(cuStreamWaitValue32(stream, (CUdeviceptr)(uintptr_t)flag, 1, CU_STREAM_WAIT_VALUE_EQ));
    ways[way].use();
    MUST(cuCtxSetCurrent(contexts[1]));
    if (strcmp(argv[1], "freed") == 0) {
        MUST(cuMemFree(from));
    }
    while (count < ways[way].others && cuMemAlloc(&others[count], OTHER_BYTES) == CUDA_SUCCESS) {
        MUST(cuMemsetD8Async(others[count++], 1, OTHER_BYTES, NULL));
    }
    MUST(cuCtxSetCurrent(contexts[0]));
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    MUST(cuStreamSynchronize(stream));
    if (ways[way].allocates) {
        MUST(cuMemcpyDtoH(host, to, BYTES));
    }
    MUST(cuCtxSetCurrent(contexts[1]));
    printf("%d other blocks, content %s\n", count, is_right_after(argv[1]) ? "right" : "wrong");
    return 0;
}
