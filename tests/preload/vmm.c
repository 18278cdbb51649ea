/* Virtual memory of the program's own, and page-locked memory that it does not free: spillway
 * counts both and serves neither. With "retry" the program needs more than is free while the pool
 * has unused chunks. */
#include <cuda.h>
#include <string.h>

#include "check.h"

enum { CHUNK_BYTES = 32 << 20, PINNED_BYTES = 3 << 20 };

static CUdeviceptr map_chunk(size_t bytes, CUmemGenericAllocationHandle *ret_chunk)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemAccessDesc access = {.location = properties.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr address = 0;

    MUST(cuMemAddressReserve(&address, bytes, 0, 0, 0));
    MUST(cuMemCreate(ret_chunk, bytes, &properties, 0));
    MUST(cuMemMap(address, bytes, 0, *ret_chunk, 0));
    MUST(cuMemSetAccess(address, bytes, &access, 1));
    return address;
}

static void unmap_chunk(CUdeviceptr address, size_t bytes, CUmemGenericAllocationHandle chunk)
{
    MUST(cuMemUnmap(address, bytes));
    MUST(cuMemRelease(chunk));
    MUST(cuMemAddressFree(address, bytes));
}

/* The memory is device memory, wherever spillway places it. */
static void ask_about(CUdeviceptr address)
{
    CUpointer_attribute names[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    enum { COUNT = sizeof(names) / sizeof(names[0]) };
    unsigned int type = 0;
    int ordinal = -1;
    size_t bytes = 0;
    void *host = &type, *values[COUNT] = {&type, &ordinal, &host, &bytes};

    MUST(cuPointerGetAttributes(COUNT, names, values, address));
    printf("type %u, device %d, host pointer: %s\n", type, ordinal, host == NULL ? "no" : "yes");
    printf("bytes: %zu\n", bytes);
    type = 0;
    ordinal = -1;
    bytes = 0;
    for (int i = 0; i < COUNT; i++) {
        printf("attribute %d: %d\n", names[i], cuPointerGetAttribute(values[i], names[i], address));
    }
    printf("type %u, device %d, bytes %zu\n", type, ordinal, bytes);
    printf("nowhere: %d\n", cuPointerGetAttribute(NULL, names[0], address));
}

int main(int argc, char **argv)
{
    size_t bytes = CHUNK_BYTES;
    CUmemGenericAllocationHandle chunk = 0;
    CUcontext context = NULL;
    CUdeviceptr address = 0;
    unsigned char byte = 0;
    void *pinned = NULL;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemHostAlloc(&pinned, PINNED_BYTES, 0));
    if (argc > 1 && strcmp(argv[1], "retry") == 0) {
        size_t free_bytes = 0;
        size_t total_bytes = 0;
        CUdeviceptr block = 0;

        MUST(cuMemGetInfo(&free_bytes, &total_bytes));
        bytes = free_bytes / 2 / CHUNK_BYTES * CHUNK_BYTES;
        MUST(cuMemAlloc(&block, free_bytes / 4 * 3));
        MUST(cuMemFree(block));
    }
    address = map_chunk(bytes, &chunk);
    MUST(cuMemsetD8(address, 5, bytes));
    MUST(cuMemcpyDtoH(&byte, address + bytes - 1, 1));
    HOLD(byte == 5);
    ask_about(address + bytes / 2);
    unmap_chunk(address, bytes, chunk);
    puts("done");
    return 0;
}
