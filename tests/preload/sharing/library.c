/* A library that shares device memory with another process, as NCCL does. Built under the name of
 * NCCL and under another one. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library.h"

#define VISIBLE __attribute__((visibility("default")))

/* The dynamic runtime. */
static int by_runtime(struct shared *shared)
{
    cudaError_t result = cudaMalloc((void **)&shared->address, shared->bytes);

    return result != cudaSuccess ? (int)result
                                 : (int)cudaIpcGetMemHandle((cudaIpcMemHandle_t *)&shared->handle,
                                                            (void *)(uintptr_t)shared->address);
}

/* A runtime that is linked with the library: its call of the driver returns into the library. */
static int by_driver(struct shared *shared)
{
    CUresult result = cuMemAlloc(&shared->address, shared->bytes);

    return result != CUDA_SUCCESS ? (int)result
                                  : (int)cuIpcGetMemHandle(&shared->handle, shared->address);
}

static int by_stream(struct shared *shared)
{
    cudaError_t result = cudaMallocAsync((void **)&shared->address, shared->bytes, NULL);

    return result != cudaSuccess ? (int)result : (int)cudaStreamSynchronize(NULL);
}

/* Memory with a handle for other processes. */
static int by_handle(struct shared *shared)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult result = cuMemCreate(&shared->chunk, shared->bytes, &prop, 0);
    CUmemAllocationProp made;
    int file = -1;

    if (result != CUDA_SUCCESS) {
        return (int)result;
    }
    result = cuMemExportToShareableHandle(&file, shared->chunk,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    (void)close(file);
    if (result == CUDA_SUCCESS) {
        result = cuMemGetAllocationPropertiesFromHandle(&made, shared->chunk);
    }
    if (result == CUDA_SUCCESS && made.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        result = CUDA_ERROR_INVALID_DEVICE;
    }
    if (result != CUDA_SUCCESS || cuMemAddressReserve(&shared->address, shared->bytes, 0, 0, 0) ||
        cuMemMap(shared->address, shared->bytes, 0, shared->chunk, 0) ||
        cuMemSetAccess(shared->address, shared->bytes, &access, 1)) {
        return result != CUDA_SUCCESS ? (int)result : -1;
    }
    return 0;
}

VISIBLE int share(const char *way, struct shared *shared)
{
    return strcmp(way, "runtime") == 0  ? by_runtime(shared)
           : strcmp(way, "driver") == 0 ? by_driver(shared)
           : strcmp(way, "stream") == 0 ? by_stream(shared)
                                        : by_handle(shared);
}

VISIBLE int unshare(const char *way, struct shared *shared)
{
    if (strcmp(way, "handle") == 0) {
        return cuMemUnmap(shared->address, shared->bytes) || cuMemRelease(shared->chunk) ||
               cuMemAddressFree(shared->address, shared->bytes);
    }
    if (strcmp(way, "stream") == 0) {
        return (int)cudaFreeAsync((void *)(uintptr_t)shared->address, NULL);
    }
    return strcmp(way, "runtime") == 0 ? (int)cudaFree((void *)(uintptr_t)shared->address)
                                       : (int)cuMemFree(shared->address);
}
