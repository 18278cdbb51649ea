/* Prints the driver's answers about a block. They are the same with and without spillway, except on
 * lines that begin with "ipc". */
#include <cuda.h>

#include "check.h"

enum { BLOCK_BYTES = (5 << 20) + 300 };

static CUdeviceptr other; /* a second block that stays allocated */
static CUmemoryPool default_pool;

static void show_range(CUdeviceptr block, CUdeviceptr address)
{
    CUdeviceptr base = 0;
    size_t bytes = 0;
    CUresult result = cuMemGetAddressRange(&base, &bytes, address);

    printf("address range: %s, offset %lld, %zu bytes\n",
           result == CUDA_SUCCESS ? "ok" : "an error",
           result == CUDA_SUCCESS ? (long long)(address - base) : 0, bytes);
    HOLD(result != CUDA_SUCCESS || base == block);
}

static unsigned long long number(CUpointer_attribute attribute, CUdeviceptr address)
{
    unsigned long long value = 0;

    MUST(cuPointerGetAttribute(&value, attribute, address));
    return value;
}

static void show_attributes(CUdeviceptr block, CUdeviceptr address, CUcontext context)
{
    printf("memory type %llu\n", number(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
    printf("device %llu\n", number(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address));
    printf("managed %llu\n", number(CU_POINTER_ATTRIBUTE_IS_MANAGED, address));
    printf("mapped %llu\n", number(CU_POINTER_ATTRIBUTE_MAPPED, address));
    printf("range size %llu\n", number(CU_POINTER_ATTRIBUTE_RANGE_SIZE, address));
    printf("range offset %llu\n", address - number(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address));
    printf("device pointer offset %llu\n",
           number(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address) - block);
    printf("pool %s\n",
           number(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address) == 0 ? "none"
           : (CUmemoryPool)number(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address) == default_pool
               ? "default"
               : "other");
    /* Memory of a pool may belong to no context. */
    HOLD((CUcontext)number(CU_POINTER_ATTRIBUTE_CONTEXT, address) == context ||
         number(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address) != 0);
    HOLD(number(CU_POINTER_ATTRIBUTE_BUFFER_ID, address) ==
         number(CU_POINTER_ATTRIBUTE_BUFFER_ID, block));
    HOLD(number(CU_POINTER_ATTRIBUTE_BUFFER_ID, address) !=
         number(CU_POINTER_ATTRIBUTE_BUFFER_ID, other));
    printf("ipc capable %llu\n", number(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address));
    printf("ipc handle types %llu\n", number(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, address));
}

/* Several attributes in one call; a free address among them is no error. */
static void show_attributes_at_once(CUdeviceptr address)
{
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    unsigned int type = 0;
    size_t bytes = 0;
    int device = -1;
    void *values[] = {&type, &bytes, &device};
    CUresult result = cuPointerGetAttributes(3, names, values, address);

    printf("at once: %d, type %u, %zu bytes, device %d\n", result, type, bytes, device);
}

static void show_free(CUdeviceptr address)
{
    unsigned int type = 0;

    printf("free: attribute %d\n",
           cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
    show_range(0, address);
    show_attributes_at_once(address);
}

static void show_handles(CUdeviceptr block)
{
    CUmemGenericAllocationHandle handle;
    CUipcMemHandle ipc;
    int file = -1;

    printf("ipc handle: %d\n", cuIpcGetMemHandle(&ipc, block));
    printf("retain: %d\n", cuMemRetainAllocationHandle(&handle, (void *)block));
    printf("range handle: %d\n",
           cuMemGetHandleForAddressRange(&file, block, 2 << 20, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                                         0));
}

static void ask(CUdeviceptr block, CUcontext context)
{
    show_range(block, block);
    show_range(block, block + 3000000);
    show_range(block, block + BLOCK_BYTES - 1);
    show_attributes(block, block, context);
    show_attributes(block, block + 3000000, context);
    show_attributes_at_once(block + 3000000);
    show_handles(block);
}

int main(void)
{
    CUcontext context = NULL;
    CUdeviceptr block = 0;
    CUstream stream = NULL;
    CUdevice device = 0;
    unsigned long long id = 0;

    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuDeviceGetDefaultMemPool(&default_pool, device));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&other, 100 << 20));

    puts("cuMemAlloc");
    MUST(cuMemAlloc(&block, BLOCK_BYTES));
    ask(block, context);
    id = number(CU_POINTER_ATTRIBUTE_BUFFER_ID, block);
    MUST(cuMemFree(block));
    show_free(block);
    MUST(cuMemAlloc(&block, BLOCK_BYTES));
    HOLD(number(CU_POINTER_ATTRIBUTE_BUFFER_ID, block) != id);
    MUST(cuMemFree(block));

    puts("cuMemAllocAsync");
    MUST(cuMemAllocAsync(&block, BLOCK_BYTES, stream));
    MUST(cuStreamSynchronize(stream));
    ask(block, context);
    MUST(cuMemFreeAsync(block, stream));
    MUST(cuStreamSynchronize(stream));
    show_free(block);
    MUST(cuMemFree(other));
    return 0;
}
