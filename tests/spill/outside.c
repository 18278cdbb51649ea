/* The driver needs more memory than the pool has to spare, while blocks fill the device.
 *
 * It allocates blocks until the device is full, frees one, and then takes three times as much from
 * a memory pool of its own, which the driver serves. Made for a device of 64 MiB. Exit 0 when all
 * content is right. */
#include "common.h"

enum { BLOCKS = 16, BLOCK_BYTES = 4 * MIB, WORDS = BLOCK_BYTES / 4, OUTSIDE_BYTES = 12 * MIB };

int main(void)
{
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUdeviceptr blocks[BLOCKS], outside;
    uint32_t expected[BLOCKS];
    size_t wrong = 0;
    CUmemoryPool own;
    CUmodule module;

    enter_device(0, &module);
    MUST(cuMemPoolCreate(&own, &props));
    for (int i = 0; i < BLOCKS; i++) {
        expected[i] = new_block(&blocks[i], i, WORDS, NULL);
    }
    MUST(cuMemFreeAsync(blocks[0], NULL));
    MUST(cuCtxSynchronize());
    MUST(cuMemAllocFromPoolAsync(&outside, OUTSIDE_BYTES, own, NULL));
    for (int i = 1; i < BLOCKS; i++) {
        wrong += count_wrong(blocks[i], WORDS, expected[i]);
        MUST(cuMemFreeAsync(blocks[i], NULL));
    }
    MUST(cuMemFreeAsync(outside, NULL));
    MUST(cuCtxSynchronize());
    printf("%zu words wrong\n", wrong);
    return wrong > 0;
}
