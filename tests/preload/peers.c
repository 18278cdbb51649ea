/* A kernel on device 1 reads and writes memory of device 0 that was allocated before and after
 * access was enabled. Needs two devices and the simulator's built-in kernels. With "pool" the
 * memory is the default pool's, and access is that of the pool. With "early OWNER" it is memory of
 * device OWNER, the first that is allocated there, and the other device has access before. */
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { WORDS = 3 << 20, VALUE = 1234 };

static CUfunction kernel(CUmodule module, const char *name)
{
    CUfunction function = NULL;

    MUST(cuModuleGetFunction(&function, module, name));
    return function;
}

static CUcontext primary(CUdevice device)
{
    CUcontext context = NULL;

    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    return context;
}

/* Fills the block from the current device and reads it back from its own. */
static void use(CUmodule module, CUdeviceptr block)
{
    unsigned int value = VALUE;
    unsigned int last = 0;
    size_t words = WORDS;
    void *arguments[] = {&block, &words, &value};

    MUST(cuLaunchKernel(kernel(module, "spw_fill"), 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    MUST(cuCtxSynchronize());
    MUST(cuMemcpyDtoH(&last, block + (WORDS - 1) * sizeof(last), sizeof(last)));
    HOLD(last == VALUE);
}

/* A kernel of the device waits for a word of its memory while a peer gets access to that. */
static void enable_meanwhile(CUcontext owner, CUcontext peer, CUdeviceptr block)
{
    void *arguments[] = {&block};
    CUstream streams[2];
    CUmodule module;

    MUST(cuCtxSetCurrent(owner));
    MUST(cuModuleLoadData(&module, "built-in"));
    for (int i = 0; i < 2; i++) {
        MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    }
    MUST(cuMemsetD32(block, 0, 1));
    MUST(cuCtxSynchronize());
    MUST(cuLaunchKernel(kernel(module, "spw_spin"), 1, 1, 1, 1, 1, 1, 0, streams[0], arguments,
                        NULL));
    MUST(cuCtxSetCurrent(peer));
    printf("enable: %d\n", cuCtxEnablePeerAccess(owner, 0));
    MUST(cuCtxSetCurrent(owner));
    MUST(cuMemsetD32Async(block, 1, 1, streams[1]));
    MUST(cuCtxSynchronize());
    for (int i = 0; i < 2; i++) {
        MUST(cuStreamDestroy(streams[i]));
    }
    MUST(cuCtxSetCurrent(peer));
}

static CUresult set_access(CUdevice device, CUmemAccess_flags flags)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                              .flags = flags};
    CUmemoryPool pool;

    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    return cuMemPoolSetAccess(pool, &access, 1);
}

/* A pool of the program's own has an access of its own. */
static CUresult set_access_of_own(void)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemoryPool pool;
    CUresult result;

    MUST(cuMemPoolCreate(&pool, &properties));
    result = cuMemPoolSetAccess(pool, &access, 1);
    MUST(cuMemPoolDestroy(pool));
    return result;
}

static CUdeviceptr allocate_ordered(CUcontext context)
{
    CUdeviceptr block;

    MUST(cuCtxSetCurrent(context));
    MUST(cuMemAllocAsync(&block, WORDS * sizeof(int), NULL));
    MUST(cuCtxSynchronize());
    return block;
}

static void use_pool(void)
{
    CUcontext second = primary(1);
    CUcontext first = primary(0);
    CUdeviceptr before, after;
    CUmodule module;

    before = allocate_ordered(first);
    printf("another pool: %d\n", set_access_of_own());
    printf("its own device: %d\n", set_access(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    printf("no such device: %d\n", set_access(7, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    printf("the other one: %d\n", set_access(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    after = allocate_ordered(first);
    MUST(cuCtxSetCurrent(second));
    MUST(cuModuleLoadData(&module, "built-in"));
    use(module, before);
    use(module, after);
    MUST(cuModuleUnload(module));
    printf("none: %d\n", set_access(1, CU_MEM_ACCESS_FLAGS_PROT_NONE));
    MUST(cuCtxSetCurrent(first));
    MUST(cuMemFreeAsync(before, NULL));
    MUST(cuMemFreeAsync(after, NULL));
}

static void enable_early(int owner)
{
    CUcontext contexts[2];
    CUdeviceptr block;
    CUmodule module;

    contexts[owner] = primary(owner);
    contexts[1 - owner] = primary(1 - owner);
    MUST(cuModuleLoadData(&module, "built-in"));
    printf("enable: %d\n", cuCtxEnablePeerAccess(contexts[owner], 0));
    MUST(cuCtxSetCurrent(contexts[owner]));
    MUST(cuMemAlloc(&block, WORDS * sizeof(int)));
    MUST(cuCtxSetCurrent(contexts[1 - owner]));
    use(module, block);
    MUST(cuMemFree(block));
}

int main(int argc, char **argv)
{
    CUcontext contexts[2];
    CUdeviceptr before = 0;
    CUdeviceptr after = 0;
    CUmodule module = NULL;

    MUST(cuInit(0));
    if (argc == 2 && strcmp(argv[1], "pool") == 0) {
        use_pool();
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "early") == 0) {
        enable_early(atoi(argv[2]));
        return 0;
    }
    contexts[1] = primary(1);
    MUST(cuModuleLoadData(&module, "built-in"));
    contexts[0] = primary(0);
    MUST(cuMemAlloc(&before, WORDS * sizeof(int)));

    MUST(cuCtxSetCurrent(contexts[1]));
    enable_meanwhile(contexts[0], contexts[1], before);
    printf("enable again: %d\n", cuCtxEnablePeerAccess(contexts[0], 0));
    use(module, before);

    MUST(cuCtxSetCurrent(contexts[0]));
    MUST(cuMemAlloc(&after, WORDS * sizeof(int)));
    MUST(cuCtxSetCurrent(contexts[1]));
    use(module, after);

    printf("disable: %d\n", cuCtxDisablePeerAccess(contexts[0]));
    printf("disable again: %d\n", cuCtxDisablePeerAccess(contexts[0]));
    MUST(cuMemFree(before));
    MUST(cuMemFree(after));
    return 0;
}
