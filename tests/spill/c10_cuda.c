/* Stand-in for PyTorch's native allocator: a library of its name that caches freed memory, and
 * after a refusal frees its cache and allocates again, and creates the memory of its expandable
 * segments itself. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

enum { CACHED_MOST = 16 };

static void *cached[CACHED_MOST];
static int cached_count, failed_creates;

#define EXPORT __attribute__((visibility("default")))

EXPORT void *native_allocate(size_t bytes, int *ret_refusals);
EXPORT void native_keep(void *address);
EXPORT CUresult native_create(CUmemGenericAllocationHandle *ret_handle, size_t bytes,
                              const CUmemAllocationProp *prop);

void native_keep(void *address)
{
    cached[cached_count++] = address;
}

void *native_allocate(size_t bytes, int *ret_refusals)
{
    void *address = NULL;

    *ret_refusals = 0;
    while (cudaMalloc(&address, bytes) != cudaSuccess) {
        (void)cudaGetLastError();
        if (++*ret_refusals == 2) {
            return NULL;
        }
        while (cached_count > 0) {
            (void)cudaFree(cached[--cached_count]);
        }
    }
    return address;
}

CUresult native_create(CUmemGenericAllocationHandle *ret_handle, size_t bytes,
                       const CUmemAllocationProp *prop)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    __typeof__(cuMemCreate) *create =
        (__typeof__(cuMemCreate) *)(uintptr_t)dlsym(driver, "cuMemCreate");

    CUresult result = create(ret_handle, bytes, prop, 0);

    if (result != CUDA_SUCCESS) {
        failed_creates++; /* so that the call is not the function's last act, as in PyTorch */
    }
    return result;
}
