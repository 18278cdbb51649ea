/* A preloaded library that counts allocations, as profilers do: it replaces dlsym and finds the
 * next one by its version. The runtime's functions it finds by RTLD_NEXT, the driver's through
 * cuGetProcAddress. At the end it writes the count. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(__aarch64__)
#    define OLDEST "GLIBC_2.17"
#else
#    define OLDEST "GLIBC_2.2.5"
#endif
#define EXPORT     __attribute__((visibility("default")))
#define NEXT(name) ((__typeof__(name) *)(uintptr_t)dlsym(RTLD_NEXT, #name))

static atomic_int count;
static __typeof__(cuGetProcAddress_v2) *resolver;
static __typeof__(cuMemAlloc_v2) *resolved; /* by which the runtime allocates */

EXPORT cudaError_t cudaMalloc(void **address, size_t bytes)
{
    atomic_fetch_add(&count, 1);
    return NEXT(cudaMalloc)(address, bytes);
}

EXPORT cudaError_t cudaFree(void *address)
{
    return NEXT(cudaFree)(address);
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    atomic_fetch_add(&count, 1);
    return (resolved != NULL ? resolved : NEXT(cuMemAlloc_v2))(address, bytes);
}

static CUresult resolve(const char *symbol, void **pfn, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status)
{
    CUresult result = resolver(symbol, pfn, version, flags, status);

    if (result == CUDA_SUCCESS && pfn != NULL && *pfn != NULL &&
        strcmp(symbol, "cuMemAlloc") == 0) {
        *(void **)&resolved = *pfn;
        *pfn = (void *)cuMemAlloc_v2;
    }
    return result;
}

EXPORT void *dlsym(void *handle, const char *name)
{
    static void *(*next)(void *, const char *);

    if (next == NULL) {
        *(void **)&next = dlvsym(RTLD_NEXT, "dlsym", OLDEST);
    }
    if (handle != RTLD_NEXT && strcmp(name, "cuGetProcAddress_v2") == 0) {
        *(void **)&resolver = next(handle, name);
        return resolver != NULL ? (void *)resolve : NULL;
    }
    return handle != RTLD_NEXT && strcmp(name, "cuMemAlloc_v2") == 0 ? (void *)cuMemAlloc_v2
                                                                     : next(handle, name);
}

__attribute__((destructor)) static void report(void)
{
    fprintf(stderr, "counted: %d\n", atomic_load(&count));
}
