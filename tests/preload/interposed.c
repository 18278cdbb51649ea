/* Allocates blocks by the runtime and, if it is linked with it, by the driver, until one is refused
 * or there are as many as asked for. Checks their content, frees them, and does it all again.
 *
 *     interposed BLOCKS    of 4 MiB
 */
#ifdef INTERPOSED_DRIVER
#    include <cuda.h>
#endif
#include <cuda_runtime_api.h>
#include <string.h>

#include "check.h"

enum { BYTES = 4 << 20, MOST = 256, STEP = 4096 };

static void *blocks[MOST];
static unsigned char content[BYTES];

static int way_of(int block)
{
#ifdef INTERPOSED_DRIVER
    return block % 3;
#else
    return block % 2;
#endif
}

static int take(int block)
{
    switch (way_of(block)) {
    case 0:
        return (int)cudaMalloc(&blocks[block], BYTES);
    case 1:
        return (int)cudaMallocAsync(&blocks[block], BYTES, NULL);
    default:
#ifdef INTERPOSED_DRIVER
        return (int)cuMemAlloc((CUdeviceptr *)&blocks[block], BYTES);
#else
        return -1;
#endif
    }
}

static void give(int block)
{
    switch (way_of(block)) {
    case 0:
        MUST(cudaFree(blocks[block]));
        break;
    case 1:
        MUST(cudaFreeAsync(blocks[block], NULL));
        break;
    default:
#ifdef INTERPOSED_DRIVER
        MUST(cuMemFree((CUdeviceptr)blocks[block]));
#endif
        break;
    }
}

static int wrong_bytes(int block)
{
    int wrong = 0;

    MUST(cudaMemcpy(content, blocks[block], BYTES, cudaMemcpyDeviceToHost));
    for (int i = 0; i < BYTES; i += STEP) {
        wrong += content[i] != block;
    }
    return wrong;
}

int main(int argc, char **argv)
{
    int most = argc > 1 ? atoi(argv[1]) : 0;

    HOLD(most > 0 && most <= MOST);
    MUST(cudaFree(NULL));
    for (int round = 0; round < 2; round++) {
        int count = 0, wrong = 0, result = 0;

        while (count < most && (result = take(count)) == 0) {
            MUST(cudaMemset(blocks[count], count, BYTES));
            count++;
        }
        (void)cudaGetLastError();
        for (int i = 0; i < count; i++) {
            wrong += wrong_bytes(i);
        }
        for (int i = 0; i < count; i++) {
            give(i);
        }
        MUST(cudaDeviceSynchronize());
        printf("blocks: %d, the next one: %d, wrong: %d\n", count, result, wrong);
    }
    return 0;
}
