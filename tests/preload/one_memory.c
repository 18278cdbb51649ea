/* Takes memory of one kind, and then of the device, until it is refused, and prints what it got.
 *
 * usage: one_memory KIND MIB
 *   KIND  the memory to take first: none, device, own (of the process), pinned, managed, foreign
 *         (of a memory pool that the program made) or created (cuMemCreate). varied: has a
 *         block, then a larger one elsewhere, and nothing else
 *   MIB   how much of it, in blocks of 16 MiB */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { MIB = 1 << 20, BLOCK = 16 * MIB, MOST = 512 };

static CUmemoryPool pool;

static CUresult take_own(void)
{
    char *block = malloc(BLOCK);
    size_t free, total;

    HOLD(block != NULL);
    memset(block, 1, BLOCK);
    /* The driver is asked for something, as programs do now and then. */
    for (int i = 0; i < 64; i++) {
        MUST(cuMemGetInfo(&free, &total));
    }
    return CUDA_SUCCESS;
}

static CUresult take_created(void)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CUmemGenericAllocationHandle handle;

    return cuMemCreate(&handle, BLOCK, &prop, 0);
}

static CUresult take(const char *kind)
{
    CUdeviceptr device;
    void *host;

    if (strcmp(kind, "device") == 0) {
        return cuMemAlloc(&device, BLOCK);
    }
    if (strcmp(kind, "pinned") == 0) {
        return cuMemAllocHost(&host, BLOCK);
    }
    if (strcmp(kind, "managed") == 0) {
        return cuMemAllocManaged(&device, BLOCK, CU_MEM_ATTACH_GLOBAL);
    }
    if (strcmp(kind, "foreign") == 0) {
        return cuMemAllocFromPoolAsync(&device, BLOCK, pool, NULL);
    }
    if (strcmp(kind, "created") == 0) {
        return take_created();
    }
    HOLD(strcmp(kind, "own") == 0);
    return take_own();
}

static void show(const char *when)
{
    size_t free, total;

    MUST(cuMemGetInfo(&free, &total));
    printf("%s: %zu MiB free of %zu MiB\n", when, free / MIB, total / MIB);
    fflush(stdout);
}

/* Takes up to `count` blocks, and prints how many there were. */
static void fill(const char *kind, int count)
{
    CUresult result = CUDA_SUCCESS;
    int taken = 0;

    while (taken < count && (result = take(kind)) == CUDA_SUCCESS) {
        taken++;
    }
    printf("%s: %d MiB, then %s\n", kind, taken * BLOCK / MIB,
           result == CUDA_SUCCESS               ? "enough"
           : result == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory"
                                                : "another error");
    fflush(stdout);
}

/* Another block behind the first one stays, so that the first one cannot grow. */
static void vary(void)
{
    CUdeviceptr first, behind, larger;

    MUST(cuMemAlloc(&first, BLOCK));
    MUST(cuMemAlloc(&behind, 2 * MIB));
    MUST(cuMemFree(first));
    MUST(cuMemAlloc(&larger, BLOCK + 2 * MIB));
}

int main(int argc, char **argv)
{
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
    int integrated, page_tables;
    CUcontext context;

    HOLD(argc == 3);
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemPoolCreate(&pool, &props));
    MUST(cuDeviceGetAttribute(&integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED, 0));
    MUST(cuDeviceGetAttribute(&page_tables,
                              CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 0));
    printf("integrated %d, page tables of the host %d\n", integrated, page_tables);
    show("before");
    if (strcmp(argv[1], "varied") == 0) {
        vary();
        return 0;
    }
    if (strcmp(argv[1], "none") != 0) {
        fill(argv[1], atoi(argv[2]) * MIB / BLOCK);
        show("between");
    }
    fill("device", MOST);
    show("after");
    return 0;
}
