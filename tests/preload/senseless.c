/* Calls with arguments that make no sense, or that mean nothing to do: the answers are the same
 * with and without spillway. Needs two devices. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>

#include "check.h"

enum { BYTES = 3 << 20 };

/* Prints the number of a result and the call that it belongs to. */
#define TRY(call) printf("%d %s\n", (int)(call), #call)

static CUdeviceptr block;
static CUmemoryPool standard, own;

static void allocate(void)
{
    static const unsigned int sizes[] = {0, 1, 2, 4, 5, 8, 16, 32};
    CUdeviceptr address = 0;
    size_t pitch = 0;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        CUresult result = cuMemAllocPitch(&address, &pitch, 1000, 100, sizes[i]);

        printf("element size %u: %d, pitch %zu\n", sizes[i], result, pitch);
        if (result == CUDA_SUCCESS) {
            MUST(cuMemFree(address));
        }
        pitch = 0;
    }
    TRY(cuMemAllocPitch(NULL, &pitch, 1000, 100, 4));
    TRY(cuMemAllocPitch(&address, NULL, 1000, 100, 4));
    TRY(cuMemAllocPitch(&address, &pitch, 0, 100, 4));
    TRY(cuMemAllocPitch(&address, &pitch, 1000, 0, 4));
    TRY(cuMemAllocPitch(&address, &pitch, SIZE_MAX - 600, 1, 4) == CUDA_SUCCESS);
    TRY(cuMemAllocPitch(&address, &pitch, SIZE_MAX / 4, 7, 4) == CUDA_SUCCESS);
    TRY(cuMemAlloc(NULL, BYTES));
    TRY(cuMemAlloc(&address, 0));
    TRY(cuMemAlloc(&address, SIZE_MAX));
    TRY(cuMemAlloc(&address, SIZE_MAX - 600));
    TRY(cuMemAllocAsync(NULL, BYTES, NULL));
    TRY(cuMemAllocAsync(&address, 0, NULL));
    TRY(cuMemFree(0));
    TRY(cuMemFree(block + 512));
    TRY(cuMemFreeAsync(block + 512, NULL));
}

static void ask(void)
{
    CUpointer_attribute odd = (CUpointer_attribute)99, type = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    unsigned int number = 0;
    void *values[] = {&number};
    CUipcMemHandle handle;
    CUdeviceptr base = 0;
    size_t bytes = 0;

    TRY(cuMemGetInfo(NULL, &bytes));
    TRY(cuMemGetInfo(&bytes, NULL));
    TRY(cuMemGetAddressRange(NULL, &bytes, block + 1));
    HOLD(bytes == BYTES);
    TRY(cuMemGetAddressRange(&base, NULL, block + 1));
    HOLD(base == block);
    TRY(cuPointerGetAttribute(NULL, type, block));
    TRY(cuPointerGetAttribute(&number, odd, block));
    TRY(cuPointerGetAttributes(0, &type, values, block));
    TRY(cuPointerGetAttributes(1, &odd, values, block));
    TRY(cuPointerGetAttributes(1, NULL, values, block));
    TRY(cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block));
    TRY(cuPointerSetAttribute(&number, odd, block));
    TRY(cuIpcGetMemHandle(NULL, block));
    TRY(cuIpcGetMemHandle(&handle, 0));
    TRY(cuMulticastBindAddr(0, 0, block, BYTES, 0));
}

/* Memory is shared with other processes only. */
static void share(void)
{
    typedef CUresult open_v1(CUdeviceptr *, CUipcMemHandle, unsigned int);
    open_v1 *older = (open_v1 *)(uintptr_t)dlsym(RTLD_DEFAULT, "cuIpcOpenMemHandle");
    CUipcMemHandle handle;
    CUdeviceptr address;
    CUcontext context;

    MUST(cuIpcGetMemHandle(&handle, block));
    TRY(cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    TRY(older(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    TRY(cuIpcOpenMemHandle(NULL, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    TRY(cuIpcOpenMemHandle(&address, handle, 0));
    TRY(cuIpcCloseMemHandle(block));
    MUST(cuCtxPopCurrent(&context));
    TRY(cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    MUST(cuCtxPushCurrent(context));
}

static void use_pools(void)
{
    CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    CUmemLocation nowhere = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 7};
    CUmemAccessDesc access = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAccessDesc elsewhere = {.location = {.type = CU_MEM_LOCATION_TYPE_HOST}};
    CUmemPoolPtrExportData data;
    CUmemoryPool current = NULL;
    CUdeviceptr address = 0;
    cuuint64_t value = 0;
    int flag = -1;

    TRY(cuMemPoolGetAttribute(standard, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, NULL));
    TRY(cuMemPoolGetAttribute(standard, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &flag));
    printf("follows events: %d\n", flag);
    TRY(cuMemPoolGetAttribute(standard, (CUmemPool_attribute)99, &value));
    TRY(cuMemPoolSetAttribute(standard, (CUmemPool_attribute)99, &value));
    value = 1;
    TRY(cuMemPoolSetAttribute(standard, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    TRY(cuMemPoolSetAttribute(standard, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    value = 0;
    TRY(cuMemPoolGetAttribute(standard, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    printf("threshold: %llu\n", (unsigned long long)value);
    TRY(cuMemPoolSetAccess(standard, &access, 1));
    TRY(cuMemPoolSetAccess(standard, &elsewhere, 1));
    TRY(cuMemPoolSetAccess(standard, &access, 0));
    TRY(cuMemPoolExportPointer(&data, block) != CUDA_SUCCESS);
    TRY(cuMemPoolDestroy(standard));
    TRY(cuDeviceSetMemPool(7, standard));
    TRY(cuDeviceSetMemPool(0, NULL));
    TRY(cuMemSetMemPool(&nowhere, CU_MEM_ALLOCATION_TYPE_PINNED, own));
    TRY(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_INVALID, own));
    TRY(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, own));
    MUST(cuDeviceGetMemPool(&current, 0));
    HOLD(current == own);
    MUST(cuMemAllocAsync(&address, BYTES, NULL));
    MUST(cuMemPoolGetAttribute(own, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    printf("in the current pool: %llu\n", (unsigned long long)value);
    TRY(cuMemPoolExportPointer(&data, address) != CUDA_SUCCESS);
    MUST(cuMemFreeAsync(address, NULL));
    MUST(cuMemPoolDestroy(own));
    TRY(cuMemPoolDestroy(own));
    MUST(cuDeviceGetMemPool(&current, 0));
    HOLD(current == standard);
}

static void use_contexts(void)
{
    __typeof__(cuCtxDestroy) *synchronize =
        (__typeof__(cuCtxDestroy) *)(uintptr_t)dlsym(RTLD_DEFAULT, "cuCtxSynchronize_v2");
    __typeof__(cuStreamSynchronize) *synchronize_ptsz =
        (__typeof__(cuStreamSynchronize) *)(uintptr_t)dlsym(RTLD_DEFAULT,
                                                            "cuStreamSynchronize_ptsz");
    CUgraphExec executable;
    size_t left, total;
    CUcontext context;
    CUgraph graph;
    void *memory;

    MUST(cuCtxGetCurrent(&context));
    TRY(cuDevicePrimaryCtxRetain(NULL, 0));
    MUST(cuGraphCreate(&graph, 0));
    TRY(cuGraphInstantiateWithParams(&executable, graph, NULL));
    MUST(cuGraphDestroy(graph));
    TRY(cuCtxDestroy(NULL));
    TRY(cuCtxDestroy(context));
    TRY(synchronize(NULL));
    TRY(cuCtxEnablePeerAccess(context, 0));
    TRY(cuCtxEnablePeerAccess(NULL, 0));
    TRY(cuCtxDisablePeerAccess(context));
    TRY(cuGraphInstantiate(&executable, NULL, 0));
    TRY(cuGraphExecDestroy(NULL));
    TRY(cuGraphDestroy(NULL));
    TRY(cuGreenCtxDestroy(NULL));
    TRY(cuModuleUnload(NULL));
    TRY(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph));
    TRY(cuStreamEndCapture(CU_STREAM_PER_THREAD, NULL));
    MUST(cuCtxSetCurrent(NULL));
    TRY(cuCtxEnablePeerAccess(context, 0));
    TRY(cuCtxDisablePeerAccess(context));
    TRY(cuStreamSynchronize(NULL));
    TRY(synchronize_ptsz(NULL));
    TRY(cuCtxSynchronize());
    TRY(synchronize(NULL));
    TRY(cuMemGetInfo(&left, &total));
    TRY(cuMemHostAlloc(&memory, BYTES, 0));
    TRY(cuMemHostUnregister(&memory));
    TRY(cuStreamEndCapture(NULL, &graph));
    MUST(cuCtxSetCurrent(context));
}

int main(void)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUcontext context = NULL;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuDeviceGetDefaultMemPool(&standard, 0));
    MUST(cuMemPoolCreate(&own, &properties));
    MUST(cuMemAlloc(&block, BYTES));
    allocate();
    share();
    ask();
    use_pools();
    use_contexts();
    MUST(cuMemFree(block));
    return 0;
}
