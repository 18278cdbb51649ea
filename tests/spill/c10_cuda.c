/* Stand-in for PyTorch's native allocator: a library of its name that caches freed memory, and
 * after a refusal frees its cache and allocates again. */
#include <cuda_runtime_api.h>
#include <stddef.h>

enum { CACHED_MOST = 16 };

static void *cached[CACHED_MOST];
static int cached_count;

#define EXPORT __attribute__((visibility("default")))

EXPORT void *native_allocate(size_t bytes, int *ret_refusals);
EXPORT void native_keep(void *address);

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
