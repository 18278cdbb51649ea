/* usage: capture [free]
 *
 * One thread captures a graph in global mode while another allocates memory that the pool must get
 * from the driver. The capture must stay valid and the memory good, though the driver alone would
 * refuse it. The other thread waits for nothing, which would be forbidden during the capture.
 *
 * free: the capture is in thread-local mode, and the other thread first frees a block in the way
 * that waits for all streams. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "check.h"

enum { BLOCK_BYTES = 64 << 20, BLOCKS = 4, PINNED_BYTES = 4096 };

static bool frees;
static cudaStream_t other_stream;
static unsigned char *pinned; /* the end of the last block, read back */

static void *allocate(void *unused)
{
    void *blocks[BLOCKS];

    if (frees) {
        MUST(cudaMalloc(&blocks[0], BLOCK_BYTES));
        MUST(cudaFree(blocks[0]));
    }
    for (int i = 0; i < BLOCKS; i++) {
        MUST(cudaMallocAsync(&blocks[i], BLOCK_BYTES, other_stream));
        MUST(cudaMemsetAsync(blocks[i], 7, BLOCK_BYTES, other_stream));
    }
    MUST(cudaMemcpyAsync(pinned, (char *)blocks[BLOCKS - 1] + BLOCK_BYTES - PINNED_BYTES,
                         PINNED_BYTES, cudaMemcpyDeviceToHost, other_stream));
    for (int i = 0; i < BLOCKS; i++) {
        MUST(cudaFreeAsync(blocks[i], other_stream));
    }
    return unused;
}

static void check_other(void)
{
    MUST(cudaStreamSynchronize(other_stream));
    HOLD(pinned[0] == 7 && memcmp(pinned, pinned + 1, PINNED_BYTES - 1) == 0);
}

int main(int argc, char **argv)
{
    enum cudaStreamCaptureStatus status;
    cudaGraphExec_t executable = NULL;
    cudaGraph_t graph = NULL;
    cudaStream_t stream = NULL;
    pthread_t thread;
    void *block = NULL;
    unsigned char byte = 0;

    frees = argc > 1 && strcmp(argv[1], "free") == 0;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&other_stream, cudaStreamNonBlocking));
    MUST(cudaHostAlloc((void **)&pinned, PINNED_BYTES, cudaHostAllocDefault));
    MUST(cudaMalloc(&block, 4096));
    MUST(cudaStreamBeginCapture(stream, frees ? cudaStreamCaptureModeThreadLocal
                                              : cudaStreamCaptureModeGlobal));
    MUST(cudaMemsetAsync(block, 9, 4096, stream));

    MUST(pthread_create(&thread, NULL, allocate, NULL));
    MUST(pthread_join(thread, NULL));

    MUST(cudaStreamIsCapturing(stream, &status));
    HOLD(status == cudaStreamCaptureStatusActive);
    MUST(cudaStreamEndCapture(stream, &graph));
    check_other();
    MUST(cudaGraphInstantiate(&executable, graph, 0));
    MUST(cudaGraphLaunch(executable, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(&byte, block, 1, cudaMemcpyDeviceToHost));
    HOLD(byte == 9);
    MUST(cudaGraphExecDestroy(executable));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaFree(block));
    puts("capture valid");
    return 0;
}
