/* all_free [use]: asks how much memory is free, requests exactly that, and frees it, as PyTorch
 * does for cudnn.benchmark; with `use` it uses the memory in between. Prints what is free each
 * time. */
#include <cuda_runtime_api.h>
#include <string.h>

#include "check.h"

enum { KEPT_BYTES = 64 << 20 };

static size_t free_bytes(const char *when)
{
    size_t bytes = 0, total = 0;

    MUST(cudaMemGetInfo(&bytes, &total));
    printf("%s: %zu\n", when, bytes);
    return bytes;
}

/* Uses a block in its middle. */
static void use(char *block, size_t bytes)
{
    char read = 0;

    MUST(cudaMemsetAsync(block + bytes / 2, 7, 1, NULL));
    MUST(cudaMemcpy(&read, block + bytes / 2, 1, cudaMemcpyDefault));
    printf("read: %d\n", read);
}

int main(int argc, char **argv)
{
    char *block, *kept, read = 0;
    size_t all;

    MUST(cudaMallocAsync((void **)&kept, KEPT_BYTES, NULL));
    MUST(cudaMemsetAsync(kept, 5, KEPT_BYTES, NULL));
    all = free_bytes("before");
    MUST(cudaMallocAsync((void **)&block, all, NULL));
    free_bytes("held");
    if (argc > 1 && strcmp(argv[1], "use") == 0) {
        use(block, all);
    }
    MUST(cudaFreeAsync(block, NULL));
    MUST(cudaMemcpy(&read, kept + KEPT_BYTES / 2, 1, cudaMemcpyDefault));
    printf("kept: %d\n", read);
    free_bytes("after");
    MUST(cudaFree(kept));
    return 0;
}
