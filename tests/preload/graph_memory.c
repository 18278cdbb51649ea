/* Allocates and frees on a stream that is being captured: that memory belongs to the graph. */
#include <cuda_runtime_api.h>

#include "check.h"

int main(void)
{
    cudaGraphExec_t executable = NULL;
    cudaGraph_t graph = NULL;
    cudaStream_t stream = NULL;
    void *block = NULL;
    void *outside = NULL;
    size_t free = 0;
    size_t total = 0;

    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaMallocAsync(&outside, 4096, stream));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    SHOW(cudaGetErrorName, cudaMallocAsync(&block, 1 << 20, stream));
    MUST(cudaMemGetInfo(&free, &total));
    HOLD(free + 4096 + (1 << 20) <= total); /* PyTorch takes it for granted */
    SHOW(cudaGetErrorName, cudaMemsetAsync(block, 1, 1 << 20, stream));
    SHOW(cudaGetErrorName, cudaFreeAsync(block, stream));
    SHOW(cudaGetErrorName, cudaStreamEndCapture(stream, &graph));
    SHOW(cudaGetErrorName, cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 3; i++) {
        SHOW(cudaGetErrorName, cudaGraphLaunch(executable, stream));
    }
    SHOW(cudaGetErrorName, cudaFreeAsync(outside, stream));
    SHOW(cudaGetErrorName, cudaStreamSynchronize(stream));
    SHOW(cudaGetErrorName, cudaGraphExecDestroy(executable));
    SHOW(cudaGetErrorName, cudaGraphDestroy(graph));
    return 0;
}
