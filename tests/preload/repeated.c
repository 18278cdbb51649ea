/* Makes the calls of a step again and again, and prints for each kind how many KiB the process's
 * heap has grown meanwhile. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <malloc.h>
#include <stddef.h>

#include "check.h"

enum { BYTES = 1 << 20, WARM = 500, ROUNDS = 5000, KIB = 1024 };

static cudaStream_t stream;
static CUfunction fill;
static void *kept;

static void plain(void)
{
    void *block;

    MUST(cudaMalloc(&block, BYTES));
    MUST(cudaMemset(block, 1, 64));
    MUST(cudaFree(block));
}

static void ordered(void)
{
    void *block;

    MUST(cudaMallocAsync(&block, BYTES, stream));
    MUST(cudaMemsetAsync(block, 1, 64, stream));
    MUST(cudaFreeAsync(block, stream));
}

static void questions(void)
{
    struct cudaPointerAttributes attributes;
    size_t free_bytes, total_bytes;

    MUST(cudaPointerGetAttributes(&attributes, kept));
    MUST(cudaMemGetInfo(&free_bytes, &total_bytes));
}

static void launches(void)
{
    size_t words = 16;
    unsigned value = 7;
    void *arguments[] = {&kept, &words, &value};

    MUST(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, (CUstream)stream, arguments, NULL));
    MUST(cudaStreamSynchronize(stream));
}

static void streams(void)
{
    cudaStream_t other;
    void *block;

    MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    MUST(cudaMallocAsync(&block, BYTES, other));
    MUST(cudaFreeAsync(block, other));
    MUST(cudaStreamSynchronize(other));
    MUST(cudaStreamDestroy(other));
}

static void events(void)
{
    cudaEvent_t event;

    MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    MUST(cudaEventRecord(event, stream));
    MUST(cudaStreamWaitEvent(stream, event, 0));
    MUST(cudaEventDestroy(event));
}

static void page_locked(void)
{
    void *host;

    MUST(cudaHostAlloc(&host, BYTES, 0));
    MUST(cudaFreeHost(host));
}

static void graphs(void)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    MUST(cudaMemsetAsync(kept, 1, 64, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
}

static void refusals(void)
{
    void *block;

    HOLD(cudaMalloc(&block, (size_t)1 << 40) == cudaErrorMemoryAllocation);
    HOLD(cudaGetLastError() == cudaErrorMemoryAllocation);
}

static const struct {
    const char *name;
    void (*make)(void);
} kinds[] = {
    {"plain", plain},
    {"ordered", ordered},
    {"questions", questions},
    {"launches", launches},
    {"streams", streams},
    {"events", events},
    {"page-locked", page_locked},
    {"graphs", graphs},
    {"refusals", refusals},
};

/* Bytes of the heap in use, that of mapped blocks included. */
static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static void repeat(void (*make)(void), int rounds)
{
    for (int i = 0; i < rounds; i++) {
        make();
    }
    MUST(cudaDeviceSynchronize());
}

int main(void)
{
    CUmodule module;

    MUST(cudaFree(NULL));
    MUST(cuModuleLoadData(&module, "any image will do"));
    MUST(cuModuleGetFunction(&fill, module, "spw_fill"));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaMalloc(&kept, BYTES));
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t before;

        repeat(kinds[i].make, WARM);
        before = heap_bytes();
        repeat(kinds[i].make, ROUNDS);
        printf("%s %td\n", kinds[i].name, (ptrdiff_t)(heap_bytes() - before) / KIB);
    }
    return 0;
}
