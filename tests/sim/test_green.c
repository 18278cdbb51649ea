/* Green contexts: shares of a device's multiprocessors (the H100 has 132, in groups of 8). */
#include "work.h"

static CUdevResource resource_of(int device)
{
    CUdevResource resource;

    OK(cuDeviceGetDevResource(device, &resource, CU_DEV_RESOURCE_TYPE_SM));
    return resource;
}

static void test_split(void **state)
{
    CUdevResource whole = resource_of(0), groups[20], rest;
    unsigned int count = 0;

    assert_int_equal(whole.sm.smCount, 132);
    assert_int_equal(whole.sm.minSmPartitionSize, 8);
    OK(cuDevSmResourceSplitByCount(NULL, &count, &whole, NULL, 0, 17));
    assert_int_equal(count, 5); /* of 24 */
    count = 2;
    OK(cuDevSmResourceSplitByCount(groups, &count, &whole, &rest, 0, 17));
    assert_int_equal(count, 2);
    assert_int_equal(groups[1].sm.smCount, 24);
    assert_int_equal(rest.sm.smCount, 84);
    count = 20;
    OK(cuDevSmResourceSplitByCount(groups, &count, &whole, NULL, 0, 0));
    assert_int_equal(count, 16);
    assert_int_equal(groups[15].sm.smCount, 8);
    count = 20;
    OK(cuDevSmResourceSplitByCount(groups, &count, &whole, &rest,
                                   CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, 66));
    assert_int_equal(count, 2);
    assert_int_equal(rest.type, CU_DEV_RESOURCE_TYPE_INVALID);
    FAILS(cuDevSmResourceSplitByCount(groups, &count, &whole, NULL, 0, 133),
          CUDA_ERROR_INVALID_VALUE);
    FAILS(cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_INVALID),
          CUDA_ERROR_INVALID_RESOURCE_TYPE);
    FAILS(cuDeviceGetDevResource(9, &whole, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_INVALID_DEVICE);
}

static void test_descriptors(void **state)
{
    CUdevResource whole = resource_of(0), first[2], second[2], mixed[2];
    CUdevResourceDesc desc = NULL;
    unsigned int count = 2;

    OK(cuDevSmResourceSplitByCount(first, &count, &whole, NULL, 0, 16));
    OK(cuDevSmResourceSplitByCount(second, &count, &whole, NULL, 0, 16));
    OK(cuDevResourceGenerateDesc(&desc, first, 2));
    mixed[0] = first[0];
    mixed[1] = second[0];
    FAILS(cuDevResourceGenerateDesc(&desc, mixed, 2), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    mixed[1].type = CU_DEV_RESOURCE_TYPE_INVALID;
    FAILS(cuDevResourceGenerateDesc(&desc, mixed, 2), CUDA_ERROR_INVALID_RESOURCE_TYPE);
    FAILS(cuDevResourceGenerateDesc(&desc, first, 0), CUDA_ERROR_INVALID_VALUE);
}

static void test_context(void **state)
{
    CUdevResource whole = resource_of(0), share, seen;
    CUcontext ctx = NULL, primary = NULL, popped = NULL;
    CUdevResourceDesc desc = NULL;
    unsigned long long id = 0;
    unsigned int count = 1, flags = 0;
    CUgreenCtx green = NULL;
    CUdeviceptr address = 0;
    CUstream stream = NULL;
    int active = 0;

    OK(cuDevSmResourceSplitByCount(&share, &count, &whole, NULL, 0, 32));
    OK(cuDevResourceGenerateDesc(&desc, &share, 1));
    FAILS(cuGreenCtxCreate(&green, desc, 0, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuGreenCtxCreate(&green, NULL, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_ERROR_INVALID_VALUE);
    OK(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 1); /* the green context retains it */
    OK(cuGreenCtxGetDevResource(green, &seen, CU_DEV_RESOURCE_TYPE_SM));
    assert_int_equal(seen.sm.smCount, 32);
    OK(cuGreenCtxGetId(green, &id));
    assert_true(id != 0);

    OK(cuCtxFromGreenCtx(&ctx, green));
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    assert_ptr_equal(ctx, primary);
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuCtxPushCurrent(ctx));
    OK(cuMemAlloc(&address, 4 * MIB));
    FAILS(cuGreenCtxStreamCreate(&stream, green, 0, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, -9));
    OK(cuMemsetD8Async(address, 1, 4 * MIB, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuStreamDestroy(stream));
    OK(cuMemFree(address));
    OK(cuCtxPopCurrent(&popped));
    assert_ptr_equal(popped, ctx);

    OK(cuGreenCtxDestroy(green));
    FAILS(cuGreenCtxDestroy(green), CUDA_ERROR_INVALID_CONTEXT);
    FAILS(cuCtxFromGreenCtx(&ctx, green), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORK_TEST(test_split),
        WORK_TEST(test_descriptors),
        WORK_TEST(test_context),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
