/* Contexts: stack, primary contexts, peers; several devices and threads. */
#include "check.h"

#include <pthread.h>
#include <string.h>

#define BUDGET (64 * MIB)

static CUcontext current(void)
{
    CUcontext ctx = NULL;

    OK(cuCtxGetCurrent(&ctx));
    return ctx;
}

static void test_stack(void **state)
{
    CUcontext first = NULL, second = NULL, popped = NULL;
    unsigned long long id = 0, other = 0;
    CUdevice device = -1;

    assert_null(current());
    FAILS(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
    FAILS(cuCtxPopCurrent(&popped), CUDA_ERROR_INVALID_CONTEXT);
    FAILS(cuCtxCreate(&first, NULL, 0, 5), CUDA_ERROR_INVALID_DEVICE);
    OK(cuCtxCreate(&first, NULL, 0, 0));
    OK(cuCtxCreate(&second, NULL, 0, 1));
    assert_ptr_equal(current(), second);
    OK(cuCtxGetDevice(&device));
    assert_int_equal(device, 1);
    OK(cuCtxGetId(first, &id));
    OK(cuCtxGetId(NULL, &other));
    assert_int_not_equal(id, other);

    OK(cuCtxPushCurrent(first));
    OK(cuCtxPopCurrent(&popped));
    assert_ptr_equal(popped, first);
    OK(cuCtxSetCurrent(first)); /* replaces the top */
    assert_ptr_equal(current(), first);
    OK(cuCtxPopCurrent(NULL));
    assert_ptr_equal(current(), first);
    OK(cuCtxSetCurrent(NULL)); /* pops */
    assert_null(current());

    OK(cuCtxDestroy(first));
    FAILS(cuCtxDestroy(first), CUDA_ERROR_INVALID_CONTEXT);
    FAILS(cuCtxSetCurrent(first), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxSetCurrent(second));
    OK(cuCtxDestroy(second)); /* current: is popped too */
    assert_null(current());
}

static void test_primary(void **state)
{
    CUcontext first = NULL, again = NULL;
    unsigned long long id = 0, later = 0;
    unsigned int flags = 99;
    CUdeviceptr address = 0;
    int active = -1;

    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 0);
    FAILS(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_SPIN));
    FAILS(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD),
          CUDA_ERROR_INVALID_VALUE);
    OK(cuDevicePrimaryCtxRetain(&first, 0));
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    assert_ptr_equal(first, again);
    OK(cuCtxSetCurrent(first));
    OK(cuCtxGetFlags(&flags));
    assert_int_equal(flags, CU_CTX_SCHED_SPIN);
    FAILS(cuCtxDestroy(first), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxGetId(first, &id));
    OK(cuMemAlloc(&address, 4 * MIB));
    assert_int_equal(free_bytes(), BUDGET - 4 * MIB);

    OK(cuDevicePrimaryCtxRelease(0));
    assert_int_equal(free_bytes(), BUDGET - 4 * MIB);
    OK(cuDevicePrimaryCtxRelease(0));
    FAILS(cuMemFree(address), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 0);
    assert_int_equal(flags, CU_CTX_SCHED_SPIN);

    OK(cuDevicePrimaryCtxRetain(&again, 0));
    assert_ptr_equal(first, again); /* the same handle, alive again */
    assert_int_equal(free_bytes(), BUDGET);
    OK(cuCtxGetId(NULL, &later));
    assert_int_not_equal(id, later);
    OK(cuMemAlloc(&address, 4 * MIB));
    OK(cuDevicePrimaryCtxReset(0));
    FAILS(cuMemFree(address), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(cuDevicePrimaryCtxRelease(0)); /* cuda.h: a reset is no release */
    OK(cuCtxSetCurrent(NULL));
}

static void test_peers(void **state)
{
    CUcontext first = NULL, second = NULL;
    CUdeviceptr address = 0;
    unsigned int access = 99;
    int possible = 0;

    OK(cuDeviceCanAccessPeer(&possible, 0, 1));
    assert_int_equal(possible, 1);
    OK(cuDeviceCanAccessPeer(&possible, 0, 0));
    assert_int_equal(possible, 0);
    OK(cuDevicePrimaryCtxRetain(&first, 0));
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxSetCurrent(first));
    OK(cuMemAlloc(&address, MIB));
    OK(cuCtxSetCurrent(second));
    OK(cuPointerGetAttribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, address));
    assert_int_equal(access, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    FAILS(cuCtxEnablePeerAccess(second, 0), CUDA_ERROR_INVALID_CONTEXT);
    FAILS(cuCtxEnablePeerAccess(first, 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuCtxEnablePeerAccess((CUcontext)(uintptr_t)&access, 0), CUDA_ERROR_INVALID_CONTEXT);
    FAILS(cuCtxDisablePeerAccess(first), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    OK(cuCtxEnablePeerAccess(first, 0));
    FAILS(cuCtxEnablePeerAccess(first, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    OK(cuPointerGetAttribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, address));
    assert_int_equal(access, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cuCtxDisablePeerAccess(first));
    OK(cuPointerGetAttribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, address));
    assert_int_equal(access, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    OK(cuMemFree(address));
    OK(cuCtxSetCurrent(NULL));
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxRelease(1));
}

static void test_limits(void **state)
{
    CUcontext ctx = NULL;
    size_t value = 0;

    OK(cuCtxCreate(&ctx, NULL, 0, 0));
    OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    assert_int_equal(value, 1024);
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    assert_int_equal(value, 4096);
    FAILS(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 3), CUDA_ERROR_UNSUPPORTED_LIMIT);
    FAILS(cuCtxGetLimit(&value, CU_LIMIT_MAX), CUDA_ERROR_UNSUPPORTED_LIMIT);
    OK(cuCtxDestroy(ctx));
}

static void test_identity(void **state)
{
    CUuuid first, second;
    char text[32];
    CUdevice device = -1;
    int value = 0;

    OK(cuDeviceGetUuid(&first, 0));
    OK(cuDeviceGetUuid(&second, 1));
    assert_memory_not_equal(&first, &second, sizeof(first));
    OK(cuDeviceGetPCIBusId(text, sizeof(text), 1));
    OK(cuDeviceGetByPCIBusId(&device, text));
    assert_int_equal(device, 1);
    FAILS(cuDeviceGetPCIBusId(text, 5, 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
    FAILS(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    assert_int_equal(value, 9);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    assert_int_equal(value, 1);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_INTEGRATED, 0));
    assert_int_equal(value, 0);
    FAILS(cuDeviceGetAttribute(&value, (CUdevice_attribute)0, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
}

/* Another thread starts without a context, whatever this one has. */
static void *other_thread(void *argument)
{
    CUcontext ctx = (CUcontext)argument, mine = ctx;
    CUdeviceptr address = 0;

    if (cuCtxGetCurrent(&mine) != CUDA_SUCCESS || mine != NULL ||
        cuMemAlloc(&address, 1) != CUDA_ERROR_INVALID_CONTEXT || cuCtxSetCurrent(ctx) != 0) {
        return argument;
    }
    for (int i = 0; i < 20000; i++) {
        if (cuMemAlloc(&address, 1 + (size_t)i) != 0 || cuMemFree(address) != 0) {
            return argument;
        }
    }
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[4];
    CUcontext ctx = NULL;
    void *failed = NULL;

    OK(cuCtxCreate(&ctx, NULL, 0, 0));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, other_thread, ctx), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(free_bytes(), BUDGET);
    OK(cuCtxDestroy(ctx));
}

static int init(void **state)
{
    return cuInit(0) == CUDA_SUCCESS ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stack),    cmocka_unit_test(test_primary),
        cmocka_unit_test(test_peers),    cmocka_unit_test(test_limits),
        cmocka_unit_test(test_identity), cmocka_unit_test(test_threads),
    };

    setenv("SPILLWAY_SIM_MEMORY", "64MiB", 1);
    setenv("SPILLWAY_SIM_DEVICES", "2", 1);
    return cmocka_run_group_tests(tests, init, NULL);
}
