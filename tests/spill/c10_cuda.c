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

/* What PyTorch's AllocParams and BlockPool look like in memory, with GNU's std::set. */
typedef bool compare(const void *, const void *);

struct set {
    compare *compare;
    struct node {
        long color;
        struct node *root, *first, *last;
    } end;
    size_t count;
};

struct block_pool {
    struct set blocks, unmapped;
    bool is_small;
    void *owner;
};

struct private_pool {
    long id[2];
    int uses, mallocs;
    struct block_pool large;
};

struct params {
    struct block_pool *pool;
    size_t size;
    void *block;
};

static bool by_address(const void *a, const void *b)
{
    return a < b;
}

#define NO_BLOCKS(set)                                                                             \
    {                                                                                              \
        by_address, {0, NULL, &(set).end, &(set).end}, 0                                           \
    }

static struct block_pool large = {NO_BLOCKS(large.blocks), NO_BLOCKS(large.unmapped), false, NULL};
static struct private_pool private_pool = {{0, 1},
                                           1,
                                           0,
                                           {NO_BLOCKS(private_pool.large.blocks),
                                            NO_BLOCKS(private_pool.large.unmapped), false,
                                            &private_pool}};

#define EXPORT __attribute__((visibility("default")))

EXPORT void *native_allocate(size_t bytes, int *ret_refusals);
EXPORT void *native_allocate_once(size_t bytes, bool privately, int *ret_refusals);
EXPORT void native_keep(void *address);
EXPORT CUresult native_create(CUmemGenericAllocationHandle *ret_handle, size_t bytes,
                              const CUmemAllocationProp *prop);

void native_keep(void *address)
{
    cached[cached_count++] = address;
}

/* Newer versions of PyTorch write a warning with the figures. */
static __attribute__((noinline)) void *alloc_block(struct params *params)
{
    void *address = NULL;
    size_t left, total;

    if (cudaMalloc(&address, params->size) != cudaSuccess) {
        (void)cudaMemGetInfo(&left, &total);
        (void)cudaGetLastError();
        failed_allocs++;
    }
    params->block = address;
    return address;
}

/* PyTorch reads the figures for its message before it gives up. */
static __attribute__((noinline)) void *allocate(struct params *params, bool again,
                                                int *ret_refusals)
{
    volatile char frame[512]; /* of a function that has more to do */
    size_t left, total;

    frame[0] = frame[sizeof(frame) - 1] = 0;
    *ret_refusals = 0;
    while (alloc_block(params) == NULL) {
        if (++*ret_refusals == 2 || !again) {
            (void)cudaMemGetInfo(&left, &total);
            failed_allocs++;
            return NULL;
        }
        while (cached_count > 0) {
            (void)cudaFree(cached[--cached_count]);
        }
    }
    return params->block;
}

void *native_allocate(size_t bytes, int *ret_refusals)
{
    struct params params = {&large, bytes, NULL};

    return allocate(&params, /* again */ true, ret_refusals);
}

/* While a private pool is open, PyTorch frees nothing and does not ask again: neither for the pool,
 * nor, on other threads, for the usual one. */
void *native_allocate_once(size_t bytes, bool privately, int *ret_refusals)
{
    struct params params = {privately ? &private_pool.large : &large, bytes, NULL};

    return allocate(&params, /* again */ false, ret_refusals);
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
