/* PyTorch's expandable segments: addresses for more than the device are reserved, the memory of a
 * tensor is created piece by piece, and all of it is mapped at the end. What the device and the
 * host could hold together must not fill the addresses, since PyTorch relies on a refusal before.
 *
 * Made for a device of 64 MiB. Prints how many pieces of 4 MiB could be created each time. */
#include "common.h"

enum { PIECE_BYTES = 4 * MIB, ROOM = 18, MOST = ROOM + 2 };

CUresult native_create(CUmemGenericAllocationHandle *ret_handle, size_t bytes,
                       const CUmemAllocationProp *prop);

static const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
static CUmemGenericAllocationHandle handles[MOST];
static CUdeviceptr range;

/* Creates `wanted` pieces and maps them behind the first `mapped` ones; gives them all back when
 * one is refused. Returns how many could be created. */
static int extend(int mapped, int wanted)
{
    CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    int count = 0;
    CUresult result = CUDA_SUCCESS;

    while (count < wanted && result == CUDA_SUCCESS) {
        result = native_create(&handles[mapped + count], PIECE_BYTES, &prop);
        count += result == CUDA_SUCCESS;
    }
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY) {
        MUST(result);
    }
    for (int i = mapped; i < mapped + count; i++) {
        if (count < wanted) {
            MUST(cuMemRelease(handles[i]));
        } else {
            CUdeviceptr address = range + (CUdeviceptr)i * PIECE_BYTES;

            MUST(cuMemMap(address, PIECE_BYTES, 0, handles[i], 0));
            MUST(cuMemSetAccess(address, PIECE_BYTES, &access, 1));
        }
    }
    return count;
}

static void reserve(size_t pieces)
{
    MUST(cuMemAddressReserve(&range, pieces * PIECE_BYTES, 0, 0, 0));
}

static void end(int mapped, size_t pieces)
{
    for (int i = 0; i < mapped; i++) {
        MUST(cuMemUnmap(range + (CUdeviceptr)i * PIECE_BYTES, PIECE_BYTES));
        MUST(cuMemRelease(handles[i]));
    }
    MUST(cuMemAddressFree(range, pieces * PIECE_BYTES));
}

int main(void)
{
    CUmodule module;

    enter_device(0, &module);
    reserve(ROOM);
    printf("larger than the range: %d\n", extend(0, MOST));
    printf("again: %d\n", extend(0, MOST));
    printf("almost all of it: %d\n", extend(0, ROOM - 1));
    printf("the rest: %d\n", extend(ROOM - 1, 1));
    end(ROOM, ROOM);
    reserve(8); /* not more than the device has */
    printf("a small range: %d\n", extend(0, 8));
    end(8, 8);
    return 0;
}
