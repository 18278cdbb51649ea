/* A program that creates physical memory of its own (cuMemCreate) beside 42 MiB of blocks.
 *
 *     pieces COUNT own        itself
 *     pieces COUNT handles    the same, with handles for other processes
 *     pieces COUNT rdma       the same, for network cards
 *     pieces COUNT pytorch    by PyTorch's native allocator, which asks for both
 *     pieces COUNT plain      the same without
 *
 * COUNT pieces of 4 MiB. Made for a device of 64 MiB. Prints how many could be created; exit 0 when
 * all content is right. */
#include <stdbool.h>
#include <string.h>

#include "common.h"

enum { BLOCKS = 14, BLOCK_BYTES = 3 * MIB, BLOCK_WORDS = BLOCK_BYTES / 4 };
enum { PIECE_BYTES = 4 * MIB, PIECE_WORDS = PIECE_BYTES / 4, MOST = 64 };

CUresult native_create(CUmemGenericAllocationHandle *ret_handle, size_t bytes,
                       const CUmemAllocationProp *prop);

static CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
static bool native;

/* False when the device is full. */
static bool create(CUdeviceptr address)
{
    CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUresult result = native ? native_create(&handle, PIECE_BYTES, &prop)
                             : cuMemCreate(&handle, PIECE_BYTES, &prop, 0);

    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        return false;
    }
    MUST(result);
    MUST(cuMemMap(address, PIECE_BYTES, 0, handle, 0));
    MUST(cuMemSetAccess(address, PIECE_BYTES, &access, 1));
    MUST(cuMemRelease(handle));
    return true;
}

static void choose(const char *way)
{
    bool pytorch = strcmp(way, "pytorch") == 0;

    native = pytorch || strcmp(way, "plain") == 0;
    if (pytorch || strcmp(way, "handles") == 0) {
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    }
    prop.allocFlags.gpuDirectRDMACapable = pytorch || strcmp(way, "rdma") == 0;
}

int main(int argc, char **argv)
{
    int wanted = argc == 3 ? atoi(argv[1]) : 0, count = 0;
    uint32_t expected[BLOCKS], values[MOST];
    CUdeviceptr blocks[BLOCKS], range;
    size_t wrong = 0;
    CUmodule module;

    choose(argc == 3 ? argv[2] : "");
    enter_device(0, &module);
    for (int i = 0; i < BLOCKS; i++) {
        expected[i] = new_block(&blocks[i], i, BLOCK_WORDS, NULL);
    }
    MUST(cuMemAddressReserve(&range, (size_t)MOST * PIECE_BYTES, 0, 0, 0));
    while (count < wanted && create(range + (CUdeviceptr)count * PIECE_BYTES)) {
        values[count] = 7000 + (uint32_t)count;
        MUST(cuMemsetD32Async(range + (CUdeviceptr)count * PIECE_BYTES, values[count], PIECE_WORDS,
                              NULL));
        count++;
    }
    printf("%d created\n", count);
    for (int i = 0; i < count; i++) {
        wrong += count_wrong(range + (CUdeviceptr)i * PIECE_BYTES, PIECE_WORDS, values[i]);
    }
    for (int i = 0; i < BLOCKS; i++) {
        wrong += count_wrong(blocks[i], BLOCK_WORDS, expected[i]);
        MUST(cuMemFreeAsync(blocks[i], NULL));
    }
    for (int i = 0; i < count; i++) {
        MUST(cuMemUnmap(range + (CUdeviceptr)i * PIECE_BYTES, PIECE_BYTES));
    }
    MUST(cuMemAddressFree(range, (size_t)MOST * PIECE_BYTES));
    trim_pool();
    printf("%zu words wrong\n", wrong);
    return wrong > 0;
}
