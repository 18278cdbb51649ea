/* Allocates blocks of 256 MiB until none is left, twice, and prints their number and the device's
 * free and total memory. */
#include <cuda_runtime_api.h>

#include "check.h"

enum { BLOCKS_MAX = 1024 };

static int fill(void)
{
    static void *blocks[BLOCKS_MAX];
    int count = 0;

    while (count < BLOCKS_MAX && cudaMalloc(&blocks[count], 256 << 20) == cudaSuccess) {
        count++;
    }
    SHOW(cudaGetErrorName, cudaGetLastError());
    for (int i = 0; i < count; i++) {
        MUST(cudaFree(blocks[i]));
    }
    return count;
}

int main(void)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;

    MUST(cudaMemGetInfo(&free_bytes, &total_bytes));
    printf("before: %zu free of %zu\n", free_bytes, total_bytes);
    printf("blocks: %d\n", fill());
    printf("blocks: %d\n", fill());
    MUST(cudaMemGetInfo(&free_bytes, &total_bytes));
    printf("after: %zu free of %zu\n", free_bytes, total_bytes);
    return 0;
}
