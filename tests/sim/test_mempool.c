/* Memory pools: stream order, attributes, trim, release threshold, access, life of a pool. Run with
 * SPILLWAY_SIM_SEED set, so that work takes time. */
#include "check.h"

#include <string.h>

#define SEGMENT (32 * MIB)

static size_t budget; /* free before anything is allocated: a module has taken a little */

static CUmemoryPool default_pool(void)
{
    CUmemoryPool pool = NULL;

    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    return pool;
}

static uint64_t value_of(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    cuuint64_t value = 0;

    OK(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static void set_threshold(CUmemoryPool pool, cuuint64_t bytes)
{
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
}

static CUstream new_stream(void)
{
    CUstream stream = NULL;

    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

static void test_usage_is_true(void **state)
{
    CUmemoryPool pool = default_pool();
    CUdeviceptr first = 0, second = 0;
    cuuint64_t zero = 0, one = 1;

    set_threshold(pool, UINT64_MAX);
    OK(cuMemAllocAsync(&first, 1000, NULL));
    OK(cuMemAllocAsync(&second, 40 * MIB, NULL));
    assert_int_equal(first % 512, 0);
    assert_int_equal(value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1024 + 40 * MIB);
    assert_int_equal(value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 3 * SEGMENT);
    assert_int_equal(free_bytes(), budget - 3 * SEGMENT);
    OK(cuMemFreeAsync(second, NULL));
    assert_int_equal(value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1024);
    assert_int_equal(value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1024 + 40 * MIB);
    FAILS(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one),
          CUDA_ERROR_INVALID_VALUE);
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    assert_int_equal(value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1024);
    OK(cuMemFreeAsync(first, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    assert_int_equal(value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 3 * SEGMENT);
    OK(cuMemPoolTrimTo(pool, SEGMENT));
    assert_int_equal(value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 2 * SEGMENT);
    OK(cuMemPoolTrimTo(pool, 0));
    assert_int_equal(free_bytes(), budget);
    assert_int_equal(value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 3 * SEGMENT);
    set_threshold(pool, 0);
}

static void test_threshold(void **state)
{
    CUmemoryPool pool = default_pool();
    CUdeviceptr address = 0;

    OK(cuMemAllocAsync(&address, MIB, NULL));
    OK(cuMemFreeAsync(address, NULL));
    OK(cuCtxSynchronize()); /* the default threshold is 0 */
    assert_int_equal(free_bytes(), budget);

    set_threshold(pool, SEGMENT);
    OK(cuMemAllocAsync(&address, MIB, NULL));
    OK(cuMemFreeAsync(address, NULL));
    OK(cuStreamSynchronize(NULL));
    assert_int_equal(free_bytes(), budget - SEGMENT);
    set_threshold(pool, 0);
    OK(cuStreamSynchronize(NULL));
    assert_int_equal(free_bytes(), budget);
}

/* Work on a stream that does not end until told to. */
static CUdeviceptr flag;
static CUfunction spin_kernel;

static void spin(CUstream stream)
{
    void *args[] = {&flag};

    OK(cuMemsetD32Async(flag, 0, 1, stream));
    OK(cuLaunchKernel(spin_kernel, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL));
}

static void stop_spinning(void)
{
    __atomic_store_n((uint32_t *)(uintptr_t)flag, 1, __ATOMIC_RELEASE);
}

static void test_reuse_follows_stream_order(void **state)
{
    CUstream one = new_stream(), two = new_stream();
    CUmemoryPool pool = default_pool();
    CUdeviceptr first = 0, same = 0, other = 0;

    set_threshold(pool, UINT64_MAX);
    OK(cuMemAllocAsync(&first, 4 * MIB, one));
    spin(one);
    OK(cuMemFreeAsync(first, one));
    OK(cuMemAllocAsync(&other, 4 * MIB, two)); /* the free has not come to pass */
    assert_int_not_equal(other, first);
    OK(cuMemAllocAsync(&same, 1 * MIB, one)); /* but on its own stream it is in order */
    assert_int_equal(same, first);
    FAILS(cuMemFreeAsync(first + MIB, one),
          CUDA_ERROR_INVALID_VALUE); /* what is left is not ours */
    stop_spinning();
    OK(cuStreamSynchronize(one));
    OK(cuMemFreeAsync(other, two));
    OK(cuStreamSynchronize(two));
    OK(cuMemAllocAsync(&other, 3 * MIB, two)); /* now it has */
    assert_int_equal(other, first + MIB);
    OK(cuMemFreeAsync(other, two));
    OK(cuMemFreeAsync(same, one));
    OK(cuCtxSynchronize());
    set_threshold(pool, 0);
    OK(cuCtxSynchronize());
    assert_int_equal(free_bytes(), budget);
    OK(cuStreamDestroy(one));
    OK(cuStreamDestroy(two));
}

static void test_out_of_memory(void **state)
{
    const size_t whole = budget / (2 * MIB) * (2 * MIB);
    CUdeviceptr address = 0, more = 0;

    FAILS(cuMemAllocAsync(&address, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAllocAsync(&address, budget + 1, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    FAILS(cuMemAllocAsync(&address, SIZE_MAX, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAllocAsync(&address, whole - 2 * MIB, NULL)); /* no room for a whole segment */
    OK(cuMemAllocAsync(&more, 2 * MIB, NULL));
    assert_int_equal(free_bytes(), budget - whole);
    FAILS(cuMemAllocAsync(&address, 1, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFreeAsync(address, NULL));
    for (int i = 0; i < 64; i++) { /* on another stream: the free has to come to pass first */
        CUstream stream = i % 2 == 0 ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;

        OK(cuMemAllocAsync(&address, whole - 4 * MIB, stream));
        OK(cuMemFreeAsync(address, stream));
    }
    OK(cuMemFreeAsync(more, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(free_bytes(), budget);
}

/* All four pairings of the two allocating and the two freeing functions. */
static void test_pairings(void **state)
{
    CUdeviceptr address = 0;

    OK(cuMemAllocAsync(&address, MIB, NULL));
    OK(cuStreamSynchronize(NULL));
    OK(cuMemFree(address));
    FAILS(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc(&address, 3 * MIB));
    OK(cuMemFreeAsync(address, NULL));
    FAILS(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxSynchronize());
    FAILS(cuMemFreeAsync(address, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(free_bytes(), budget);
}

static CUmemPoolProps device_pool(void)
{
    return (CUmemPoolProps){
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    };
}

static void test_life_of_a_pool(void **state)
{
    CUmemPoolProps props = device_pool();
    CUmemoryPool pool = NULL, current = NULL;
    CUdeviceptr address = 0;
    void *handle = NULL;

    OK(cuMemPoolCreate(&pool, &props));
    OK(cuDeviceSetMemPool(0, pool));
    OK(cuDeviceGetMemPool(&current, 0));
    assert_ptr_equal(current, pool);
    OK(cuMemAllocAsync(&address, MIB, NULL));
    assert_int_equal(value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), MIB);
    OK(cuPointerGetAttribute(&handle, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address));
    assert_ptr_equal(handle, pool);

    OK(cuMemPoolDestroy(pool)); /* cuda.h: at once; its memory when the last block is freed */
    FAILS(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
    OK(cuDeviceGetMemPool(&current, 0));
    assert_ptr_equal(current, default_pool());
    assert_int_equal(free_bytes(), budget - SEGMENT);
    OK(cuMemFreeAsync(address, NULL));
    OK(cuStreamSynchronize(NULL));
    assert_int_equal(free_bytes(), budget);
    FAILS(cuMemPoolDestroy(default_pool()), CUDA_ERROR_INVALID_VALUE);

    props.maxSize = 2 * SEGMENT;
    OK(cuMemPoolCreate(&pool, &props));
    FAILS(cuMemAllocFromPoolAsync(&address, 2 * SEGMENT + 1, pool, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAllocFromPoolAsync(&address, 2 * SEGMENT, pool, NULL));
    OK(cuMemFreeAsync(address, NULL));
    OK(cuMemPoolDestroy(pool));
    OK(cuCtxSynchronize());
    assert_int_equal(free_bytes(), budget);
    props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    FAILS(cuMemPoolCreate(&pool, &props), CUDA_ERROR_NOT_SUPPORTED);
}

static void test_access(void **state)
{
    CUmemLocation peer = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1};
    CUmemoryPool pool = default_pool();
    CUmemAccessDesc desc = read_write(1);
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_MAX;

    OK(cuMemPoolGetAccess(&flags, pool, &peer));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    OK(cuMemPoolSetAccess(pool, &desc, 1));
    OK(cuMemPoolGetAccess(&flags, pool, &peer));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    desc.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    OK(cuMemPoolSetAccess(pool, &desc, 1));
    desc.location.id = 0;
    FAILS(cuMemPoolSetAccess(pool, &desc, 1), CUDA_ERROR_INVALID_VALUE); /* its own device */
    desc.location.id = 9;
    FAILS(cuMemPoolSetAccess(pool, &desc, 1), CUDA_ERROR_INVALID_DEVICE);
}

static int set_up(void **state)
{
    CUmodule module;
    void *host;

    if (use_device(state) != 0 || cuModuleLoadData(&module, "any image will do") != CUDA_SUCCESS ||
        cuModuleGetFunction(&spin_kernel, module, "spw_spin") != CUDA_SUCCESS ||
        cuMemAllocHost(&host, 4096) != CUDA_SUCCESS) {
        return -1;
    }
    flag = (CUdeviceptr)(uintptr_t)host;
    budget = free_bytes();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usage_is_true),
        cmocka_unit_test(test_threshold),
        cmocka_unit_test(test_reuse_follows_stream_order),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_pairings),
        cmocka_unit_test(test_life_of_a_pool),
        cmocka_unit_test(test_access),
    };

    setenv("SPILLWAY_SIM_MEMORY", "256MiB", 1);
    setenv("SPILLWAY_SIM_DEVICES", "2", 1);
    setenv("SPILLWAY_SIM_SEED", "3", 1);
    return cmocka_run_group_tests(tests, set_up, NULL);
}
