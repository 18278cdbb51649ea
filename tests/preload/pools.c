/* Uses the default memory pool as PyTorch does, and a pool of its own. Prints only what is the same
 * with and without spillway. */
#include <cuda.h>
#include <stdint.h>

#include "check.h"

enum { BLOCK_BYTES = 10 << 20 };

static uint64_t get(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    uint64_t value = 0;

    MUST(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static void set(CUmemoryPool pool, CUmemPool_attribute attribute, uint64_t value)
{
    printf("set %d: %d\n", (int)attribute, cuMemPoolSetAttribute(pool, attribute, &value));
}

static void show(CUmemoryPool pool)
{
    uint64_t used = get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    uint64_t reserved = get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);

    printf("used %llu, high %llu\n", (unsigned long long)used,
           (unsigned long long)get(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH));
    HOLD(reserved >= used);
    HOLD(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) >= reserved);
}

static void use(CUmemoryPool pool, CUstream stream, int by_pool)
{
    CUdeviceptr blocks[3];

    for (int i = 0; i < 3; i++) {
        if (by_pool) {
            MUST(cuMemAllocFromPoolAsync(&blocks[i], BLOCK_BYTES, pool, stream));
        } else {
            MUST(cuMemAllocAsync(&blocks[i], BLOCK_BYTES, stream));
        }
        MUST(cuMemsetD8Async(blocks[i], 1, BLOCK_BYTES, stream));
    }
    MUST(cuStreamSynchronize(stream));
    show(pool);
    for (int i = 0; i < 3; i++) {
        MUST(cuMemFreeAsync(blocks[i], stream));
    }
    MUST(cuStreamSynchronize(stream));
    show(pool);
    set(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0);
    set(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0);
    show(pool);
    printf("trim: %d\n", cuMemPoolTrimTo(pool, 0));
    printf("reserved after the trim: %llu\n",
           (unsigned long long)get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
}

static void settings(CUmemoryPool pool)
{
    int off = 0;
    int value = -1;

    set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
    printf("threshold kept: %d\n", get(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == UINT64_MAX);
    MUST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &value));
    printf("opportunistic: %d\n", value);
    MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &off));
    MUST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &value));
    printf("opportunistic: %d\n", value);
}

int main(void)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUcontext context = NULL;
    CUmemoryPool pool = NULL;
    CUmemoryPool own = NULL;
    CUstream stream = NULL;

    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuDeviceGetMemPool(&pool, 0));
    settings(pool);
    puts("default pool");
    use(pool, stream, 0);
    puts("default pool, by name");
    use(pool, stream, 1);
    puts("own pool");
    MUST(cuMemPoolCreate(&own, &properties));
    use(own, stream, 1);
    MUST(cuDeviceSetMemPool(0, own));
    puts("own pool as the device's");
    use(own, stream, 0);
    MUST(cuDeviceSetMemPool(0, pool));
    MUST(cuMemPoolDestroy(own));
    return 0;
}
