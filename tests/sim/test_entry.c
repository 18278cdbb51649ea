/* Entry points: the table behind cuGetProcAddress, what works before cuInit, unmodelled functions,
 * counts, fork. */
#include "check.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/driver/core/control.h"

static void *exported(const char *name)
{
    void *address = dlsym(RTLD_DEFAULT, name);

    assert_non_null(address);
    return address;
}

static void expect_abi(const char *base, int version, cuuint64_t flags, const char *name)
{
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)99;
    void *found = NULL;

    OK(cuGetProcAddress(base, &found, version, flags, &status));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
    assert_ptr_equal(found, exported(name));
}

static void test_versions_select_abis(void **state)
{
    expect_abi("cuMemAlloc", 2000, 0, "cuMemAlloc");
    expect_abi("cuMemAlloc", 3010, 0, "cuMemAlloc");
    expect_abi("cuMemAlloc", 3020, 0, "cuMemAlloc_v2");
    expect_abi("cuMemAlloc", 13000, 0, "cuMemAlloc_v2");
    expect_abi("cuMemAlloc", 13000, 2, "cuMemAlloc_v2");
    expect_abi("cuMemcpyHtoD", 3020, 0, "cuMemcpyHtoD_v2");
    expect_abi("cuMemcpyHtoD", 7000, 0, "cuMemcpyHtoD_v2");
    expect_abi("cuMemcpyHtoD", 7000, 2, "cuMemcpyHtoD_v2_ptds");
    expect_abi("cuMemAllocAsync", 11020, 0, "cuMemAllocAsync");
    expect_abi("cuMemAllocAsync", 11020, 1, "cuMemAllocAsync");
    expect_abi("cuMemAllocAsync", 11020, 2, "cuMemAllocAsync_ptsz");
    expect_abi("cuLaunchKernel", 4000, 0, "cuLaunchKernel");
    expect_abi("cuLaunchKernel", 7000, 2, "cuLaunchKernel_ptsz");
    expect_abi("cuLaunchKernelEx", 11060, 2, "cuLaunchKernelEx_ptsz");
    expect_abi("cuStreamGetCaptureInfo", 10010, 0, "cuStreamGetCaptureInfo");
    expect_abi("cuStreamGetCaptureInfo", 11030, 2, "cuStreamGetCaptureInfo_v2_ptsz");
    expect_abi("cuStreamGetCaptureInfo", 12030, 0, "cuStreamGetCaptureInfo_v3");
    expect_abi("cuMemcpyBatchAsync", 12080, 0, "cuMemcpyBatchAsync");
    expect_abi("cuMemcpyBatchAsync", 13000, 2, "cuMemcpyBatchAsync_v2_ptsz");
    expect_abi("cuGetProcAddress", 11030, 0, "cuGetProcAddress");
    expect_abi("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
    expect_abi("cuCtxGetDevice", 12000, 0, "cuCtxGetDevice");
    expect_abi("cuCtxGetDevice", 13000, 0, "cuCtxGetDevice_v2");
    expect_abi("cuCtxCreate", 13000, 0, "cuCtxCreate_v4");
    expect_abi("cuCtxCreate", 99000, 0, "cuCtxCreate_v4"); /* above the driver's own version */
}

static void test_what_is_not_found(void **state)
{
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)99;
    void *found = &status;

    OK(cuGetProcAddress("cuNoSuchThing", &found, 13000, 0, &status));
    assert_null(found);
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);

    found = &status;
    OK(cuGetProcAddress("cuMemAllocAsync", &found, 11010, 0, &status));
    assert_null(found);
    assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);

    /* Per-thread variants came with CUDA 7.0: before it a function that has one is not found. */
    found = &status;
    OK(cuGetProcAddress("cuMemcpyHtoD", &found, 6050, 2, &status));
    assert_null(found);
    assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);

    /* The status is optional; a name with its suffix is not a base name. */
    OK(cuGetProcAddress("cuMemAlloc_v2", &found, 13000, 0, NULL));
    assert_null(found);

    found = &status;
    OK(cuGetProcAddress("", &found, 0, 0, &status));
    assert_null(found);
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);

    found = &status;
    FAILS(cuGetProcAddress(NULL, &found, 13000, 0, &status), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuGetProcAddress("cuInit", NULL, 13000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuGetProcAddress("cuInit", &found, 13000, 8, &status), CUDA_ERROR_INVALID_VALUE);
    assert_ptr_equal(found, &status);
}

static void test_first_version_has_four_arguments(void **state)
{
    CUresult (*get)(const char *, void **, int, cuuint64_t) = NULL;
    void *found = NULL;

    *(void **)&get = exported("cuGetProcAddress");
    OK(get("cuMemFree", &found, 13000, 0));
    assert_ptr_equal(found, exported("cuMemFree_v2"));
    FAILS(get("cuNoSuchThing", &found, 13000, 0), CUDA_ERROR_NOT_FOUND);
    FAILS(get("cuMemAllocAsync", &found, 11010, 0), CUDA_ERROR_NOT_FOUND);
    assert_ptr_equal(found, exported("cuMemFree_v2"));
}

/* Stands before the driver's own, as a function of a preloaded object does. */
__attribute__((visibility("default"))) CUresult
cuMulticastBindMem(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
                   CUmemGenericAllocationHandle memHandle, size_t memOffset, size_t size,
                   unsigned long long flags)
{
    return CUDA_ERROR_UNKNOWN;
}

static void test_the_driver_finds_its_own(void **state)
{
    void *found = NULL;

    assert_ptr_equal(exported("cuMulticastBindMem"), (void *)(uintptr_t)cuMulticastBindMem);
    OK(cuGetProcAddress("cuMulticastBindMem", &found, 12010, 0, NULL));
    assert_non_null(found);
    assert_ptr_not_equal(found, (void *)(uintptr_t)cuMulticastBindMem);
}

static void test_private_tables_are_refused(void **state)
{
    static const CUuuid id;
    const void *table = &id;

    assert_int_not_equal(cuGetExportTable(&table, &id), CUDA_SUCCESS);
    assert_ptr_equal(table, &id);
}

static void test_before_init(void **state)
{
    CUcontext ctx;
    int value = 0;

    OK(cuDriverGetVersion(&value));
    assert_int_equal(value, 13000);
    FAILS(cuDeviceGetCount(&value), CUDA_ERROR_NOT_INITIALIZED);
    FAILS(cuCtxGetCurrent(&ctx), CUDA_ERROR_NOT_INITIALIZED);
    FAILS(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    OK(cuInit(0));
    OK(cuDeviceGetCount(&value));
    assert_int_equal(value, 1);
    FAILS(cuDeviceGetCount(NULL), CUDA_ERROR_INVALID_VALUE);
}

static void test_error_names(void **state)
{
    const char *text = NULL;

    OK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
    assert_string_equal(text, "CUDA_ERROR_OUT_OF_MEMORY");
    OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    assert_string_equal(text, "out of memory");
    OK(cuGetErrorName(CUDA_SUCCESS, &text));
    assert_string_equal(text, "CUDA_SUCCESS");
    FAILS(cuGetErrorName((CUresult)4711, &text), CUDA_ERROR_INVALID_VALUE);
    assert_null(text);
}

static void test_unmodelled_functions_exist(void **state)
{
    CUresult (*stub)(void) = NULL;

    *(void **)&stub = exported("cuMulticastUnbind");
    FAILS(stub(), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(spillway_sim_calls("cuMulticastUnbind"), 1);
}

static void test_calls_are_counted_by_exported_name(void **state)
{
    CUdeviceptr address = 0;

    assert_int_equal(use_device(NULL), 0);
    spillway_sim_reset_calls();
    OK(cuMemAlloc(&address, 1));
    OK(cuMemFree(address));
    FAILS(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(spillway_sim_calls("cuMemAlloc_v2"), 1);
    assert_int_equal(spillway_sim_calls("cuMemAlloc"), 0);
    assert_int_equal(spillway_sim_calls("cuMemFree_v2"), 2);
    assert_int_equal(spillway_sim_calls("cuNoSuchThing"), 0);
}

/* A fork of an initialised process cannot use the driver; exec'd programs are not concerned. */
static void test_fork(void **state)
{
    int status = 0, count = 0;
    pid_t child;

    assert_int_equal(use_device(NULL), 0);
    child = fork();
    if (child == 0) {
        _exit(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                      cuInit(0) == CUDA_ERROR_NOT_INITIALIZED
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    OK(cuDeviceGetCount(&count));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_init),
        cmocka_unit_test(test_versions_select_abis),
        cmocka_unit_test(test_what_is_not_found),
        cmocka_unit_test(test_first_version_has_four_arguments),
        cmocka_unit_test(test_the_driver_finds_its_own),
        cmocka_unit_test(test_private_tables_are_refused),
        cmocka_unit_test(test_error_names),
        cmocka_unit_test(test_unmodelled_functions_exist),
        cmocka_unit_test(test_calls_are_counted_by_exported_name),
        cmocka_unit_test(test_fork),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
