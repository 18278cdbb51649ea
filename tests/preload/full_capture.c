/* Fills the device, gives everything back, and at once allocates in a capture: the driver needs
 * memory for the nodes.
 *
 *     full_capture whole    one block
 *     full_capture blocks   many blocks, each set on the stream that is captured
 *     full_capture busy     one block, while a stream still works; the capture begins before it is
 *                           done */
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { MIB = 1 << 20, BLOCK_BYTES = 4 * MIB, MOST = 64, NODES = 8, WORK_US = 50000 };

static cudaStream_t stream, other;

static void work(void *unused)
{
    (void)unused;
    usleep(WORK_US);
}

static void fill(bool in_blocks)
{
    void *blocks[MOST];
    size_t free, total;
    int count = 0;

    MUST(cudaMemGetInfo(&free, &total));
    if (!in_blocks) {
        MUST(cudaMalloc(&blocks[count++], free));
    }
    while (in_blocks && count < MOST && cudaMalloc(&blocks[count], BLOCK_BYTES) == cudaSuccess) {
        MUST(cudaMemsetAsync(blocks[count++], 1, BLOCK_BYTES, stream));
    }
    (void)cudaGetLastError();
    for (int i = 0; i < count; i++) {
        MUST(cudaFree(blocks[i]));
    }
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    cudaGraphExec_t executable = NULL;
    cudaGraph_t graph = NULL;
    void *nodes[NODES];

    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    if (strcmp(way, "busy") == 0) {
        MUST(cudaLaunchHostFunc(other, work, NULL));
    }
    fill(strcmp(way, "blocks") == 0);
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < NODES; i++) {
        SHOW(cudaGetErrorName, cudaMallocAsync(&nodes[i], BLOCK_BYTES, stream));
    }
    for (int i = 0; i < NODES; i++) {
        SHOW(cudaGetErrorName, cudaFreeAsync(nodes[i], stream));
    }
    SHOW(cudaGetErrorName, cudaStreamEndCapture(stream, &graph));
    SHOW(cudaGetErrorName, cudaGraphInstantiate(&executable, graph, 0));
    SHOW(cudaGetErrorName, cudaGraphLaunch(executable, stream));
    SHOW(cudaGetErrorName, cudaStreamSynchronize(stream));
    return 0;
}
