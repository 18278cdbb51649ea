/* Physical memory of the program's own, until its last handle and its last mapping are gone.
 * Prints how much of the device it takes meanwhile, which is the same with and without spillway. */
#include <cuda.h>

#include "check.h"

int spillway_sim_fail(const char *list); /* of the simulated driver */

enum { MIB = 1 << 20, PIECE_BYTES = 4 * MIB, HOST_BYTES = 6 * MIB };

static size_t free_before;

static void show_taken(const char *when)
{
    size_t free_bytes = 0, total = 0;

    MUST(cuMemGetInfo(&free_bytes, &total));
    printf("%s: %zu MiB\n", when, (free_before - free_bytes) / MIB);
}

static CUmemAllocationProp at(CUmemLocationType type, int id)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = type, .id = id}};
}

static CUmemGenericAllocationHandle create(void)
{
    CUmemAllocationProp properties = at(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemGenericAllocationHandle piece;

    MUST(cuMemCreate(&piece, PIECE_BYTES, &properties, 0));
    return piece;
}

/* Maps a piece and fills it. */
static void map(CUdeviceptr address, CUmemGenericAllocationHandle piece, unsigned char value)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    unsigned char byte = 0;

    MUST(cuMemMap(address, PIECE_BYTES, 0, piece, 0));
    MUST(cuMemSetAccess(address, PIECE_BYTES, &access, 1));
    MUST(cuMemsetD8(address, value, PIECE_BYTES));
    MUST(cuMemcpyDtoH(&byte, address + PIECE_BYTES - 1, 1));
    HOLD(byte == value);
}

/* Two pieces that were released before their mappings go, with one call. */
static void unmap_both(CUdeviceptr range)
{
    CUmemGenericAllocationHandle first = create(), second = create();

    map(range, first, 1);
    map(range + PIECE_BYTES, second, 2);
    printf("mapped twice: %d\n", cuMemMap(range, PIECE_BYTES, 0, second, 0));
    show_taken("two pieces");
    MUST(cuMemRelease(first));
    MUST(cuMemRelease(second));
    show_taken("two mappings");
    MUST(cuMemUnmap(range, (size_t)2 * PIECE_BYTES));
    show_taken("no mapping");
    printf("unmapped again: %d\n", cuMemUnmap(range, PIECE_BYTES));
    printf("released again: %d\n", cuMemRelease(first));
}

/* A handle that the driver gives of mapped memory keeps it. */
static void retain(CUdeviceptr range)
{
    CUmemGenericAllocationHandle piece = create(), again = 0;
    int file = -1;

    printf("retained before: %d\n", cuMemRetainAllocationHandle(&again, (void *)range));
    map(range, piece, 3);
    MUST(cuMemRetainAllocationHandle(&again, (void *)(range + PIECE_BYTES / 2)));
    printf("address range: %d\n",
           cuMemGetHandleForAddressRange(&file, range, PIECE_BYTES,
                                         CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    MUST(cuMemRelease(piece));
    MUST(cuMemUnmap(range, PIECE_BYTES));
    show_taken("retained");
    map(range, again, 4);
    MUST(cuMemUnmap(range, PIECE_BYTES));
    MUST(cuMemRelease(again));
    show_taken("released");
}

/* A piece that could not be released stays until it is. */
static void refuse(CUdeviceptr range)
{
    CUmemGenericAllocationHandle piece = create();

    MUST(spillway_sim_fail("cuMemRelease:1:999"));
    printf("release: %d\n", cuMemRelease(piece));
    show_taken("release refused");
    map(range, piece, 5);
    printf("release: %d\n", cuMemRelease(piece));
    show_taken("mapping");
    MUST(cuMemUnmap(range, PIECE_BYTES));
    show_taken("end");
}

/* Memory of the host takes nothing of the device. The second piece stays until the end. */
static void create_on_host(void)
{
    CUmemAllocationProp properties = at(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0);
    CUmemGenericAllocationHandle pieces[2];

    for (int i = 0; i < 2; i++) {
        MUST(cuMemCreate(&pieces[i], HOST_BYTES, &properties, 0));
    }
    show_taken("host memory");
    MUST(cuMemRelease(pieces[0]));
}

static void create_without_context(void)
{
    CUmemAllocationProp properties = at(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0);
    CUmemGenericAllocationHandle piece;

    MUST(cuCtxSetCurrent(NULL));
    MUST(cuMemCreate(&piece, HOST_BYTES, &properties, 0));
    MUST(cuMemRelease(piece));
}

static void create_nothing(void)
{
    CUmemAllocationProp properties = at(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemAllocationProp missing = at(CU_MEM_LOCATION_TYPE_DEVICE, 7);
    CUmemGenericAllocationHandle piece;

    printf("no handle: %d\n", cuMemCreate(NULL, PIECE_BYTES, &properties, 0));
    printf("no properties: %d\n", cuMemCreate(&piece, PIECE_BYTES, NULL, 0));
    printf("no bytes: %d\n", cuMemCreate(&piece, 0, &properties, 0));
    printf("no device: %d\n", cuMemCreate(&piece, PIECE_BYTES, &missing, 0));
    printf("odd size: %d\n", cuMemCreate(&piece, PIECE_BYTES + 1, &properties, 0));
    show_taken("nothing");
}

int main(void)
{
    CUcontext context = NULL;
    CUdeviceptr range = 0;
    size_t total = 0;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemGetInfo(&free_before, &total));
    MUST(cuMemAddressReserve(&range, (size_t)2 * PIECE_BYTES, 0, 0, 0));
    unmap_both(range);
    retain(range);
    refuse(range);
    create_on_host();
    create_nothing();
    create_without_context();
    return 0;
}
