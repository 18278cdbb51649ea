/* Asks for the settings of PyTorch's allocator, as PyTorch does when it is loaded, and then for
 * more memory than there is: twice, and once more after another allocation. Prints the results. */
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "check.h"

static void *ask(size_t bytes)
{
    void *block = NULL;

    SHOW(cudaGetErrorName, cudaMallocAsync(&block, bytes, NULL));
    (void)cudaGetLastError();
    return block;
}

int main(void)
{
    static const size_t sizes[] = {(size_t)1 << 50, (size_t)1 << 50, 1 << 20, (size_t)1 << 50};
    const char *settings = getenv("PYTORCH_ALLOC_CONF");

    printf("settings: %s\n", settings != NULL ? settings : "none");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        (void)ask(sizes[i]);
    }
    return 0;
}
