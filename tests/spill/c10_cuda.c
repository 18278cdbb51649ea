/* Stand-in for PyTorch's native allocator: a library of its name that caches freed memory, and
 * after a refusal frees its cache and allocates again, unless a private pool is open, and creates
 * the memory of its expandable segments itself. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CACHED_MOST = 16 };

static void *cached[CACHED_MOST];
static int cached_count, failed_creates, failed_allocs;

#define EXPORT __attribute__((visibility("default")))

EXPORT void *native_allocate(size_t bytes, int *ret_refusals);
EXPORT void *native_allocate_once(size_t bytes, int *ret_refusals);
EXPORT void native_keep(void *address);
EXPORT CUresult native_create(CUmemGenericAllocationHandle *ret_handle, size_t bytes,
                              const CUmemAllocationProp *prop);

void native_keep(void *address)
{
    cached[cached_count++] = address;
}

/* Newer versions of PyTorch write a warning with the figures. */
static __attribute__((noinline)) void *alloc_block(size_t bytes)
{
    void *address = NULL;
    size_t left, total;

    if (cudaMalloc(&address, bytes) != cudaSuccess) {
        (void)cudaMemGetInfo(&left, &total);
        (void)cudaGetLastError();
        failed_allocs++;
    }
    return address;
}

/* PyTorch reads the figures for its message before it gives up. */
static __attribute__((noinline)) void *allocate(size_t bytes, bool again, int *ret_refusals)
{
    size_t left, total;
    void *address;

    *ret_refusals = 0;
    while ((address = alloc_block(bytes)) == NULL) {
        if (++*ret_refusals == 2 || !again) {
            (void)cudaMemGetInfo(&left, &total);
            failed_allocs++;
            return NULL;
        }
        while (cached_count > 0) {
            (void)cudaFree(cached[--cached_count]);
        }
    }
    return address;
}

void *native_allocate(size_t bytes, int *ret_refusals)
{
    return allocate(bytes, /* again */ true, ret_refusals);
}

/* While a private pool is open, PyTorch frees nothing and does not ask again. */
void *native_allocate_once(size_t bytes, int *ret_refusals)
{
    return allocate(bytes, /* again */ false, ret_refusals);
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
