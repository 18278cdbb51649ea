/* Fills the device and, as far as it spills, the host. Then frees everything and locks pages of the
 * host itself.
 *
 * usage: host_wall MIB [stay]
 *   MIB   how much to lock at the end, by each of cuMemHostAlloc, cuMemAllocHost and
 *         cuMemHostRegister in turn; 0: nothing
 *   stay  blocks are not freed before
 *
 * Prints how many blocks there were, and the result of each function that locks pages. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

enum { MIB = 1 << 20, BLOCK = 2 * MIB, MOST = 1024 };

static CUdeviceptr blocks[MOST];

static int fill(void)
{
    int count = 0;

    while (count < MOST && cuMemAlloc(&blocks[count], BLOCK) == CUDA_SUCCESS) {
        MUST(cuMemsetD8(blocks[count], (unsigned char)count, BLOCK));
        count++;
    }
    printf("blocks: %d MiB\n", count * BLOCK / MIB);
    return count;
}

/* The content of every block is as it was written. */
static void check(int count)
{
    unsigned char first, last;

    for (int i = 0; i < count; i++) {
        MUST(cuMemcpyDtoH(&first, blocks[i], 1));
        MUST(cuMemcpyDtoH(&last, blocks[i] + BLOCK - 1, 1));
        HOLD(first == (unsigned char)i && last == (unsigned char)i);
    }
}

static void lock_pages(size_t bytes)
{
    void *memory, *own = aligned_alloc(4096, bytes);
    int result;

    HOLD(own != NULL);
    result = (int)cuMemHostAlloc(&memory, bytes, 0);
    printf("cuMemHostAlloc: %d\n", result);
    if (result == 0) {
        MUST(cuMemFreeHost(memory));
    }
    result = (int)cuMemAllocHost(&memory, bytes);
    printf("cuMemAllocHost: %d\n", result);
    if (result == 0) {
        MUST(cuMemFreeHost(memory));
    }
    result = (int)cuMemHostRegister(own, bytes, 0);
    printf("cuMemHostRegister: %d\n", result);
}

int main(int argc, char **argv)
{
    CUcontext context;
    size_t bytes;
    int count;

    HOLD(argc >= 2);
    bytes = (size_t)atoi(argv[1]) * MIB;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    count = fill();
    check(count);
    for (int i = 0; i < count && argc == 2; i++) {
        MUST(cuMemFree(blocks[i]));
    }
    MUST(cuCtxSynchronize());
    if (bytes > 0) {
        lock_pages(bytes);
    }
    return 0;
}
