/* Memory that goes while queued work names it: a sticky illegal address, unless the call waits.
 * Each answer that the options give is tried. */
#include "cases.h"
#include "check.h"

#include <pthread.h>

#define SIZE (2 * MIB)

static uint32_t *flag; /* page-locked: 1 ends the kernel */
static CUstream stream;

/* Queues a kernel that spins, and behind it work that writes the memory. Failing steps return
 * non-zero. */
static int queue_work(CUdeviceptr address)
{
    void *args[] = {&flag}, *host = NULL;
    CUfunction kernel;
    CUmodule module;

    if (cuModuleLoadData(&module, "image") != 0 ||
        cuModuleGetFunction(&kernel, module, "spw_spin") != 0 || cuMemAllocHost(&host, 4096) != 0 ||
        cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != 0) {
        return 1;
    }
    flag = host;
    __atomic_store_n(flag, 0, __ATOMIC_RELEASE);
    return cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL) != 0 ||
           cuMemsetD8Async(address, 1, SIZE, stream) != 0;
}

static void *stop_spinning_later(void *unused)
{
    struct timespec delay = {.tv_nsec = 50 * 1000 * 1000};

    nanosleep(&delay, NULL);
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    return unused;
}

static CUdeviceptr map_one(CUmemGenericAllocationHandle *handle)
{
    CUdeviceptr address = reserve(SIZE);

    *handle = create_chunk(SIZE);
    OK(cuMemMap(address, SIZE, 0, *handle, 0));
    allow(address, SIZE);
    return address;
}

/* The context is lost, as on a real device: every call says so. */
static bool context_is_lost(void)
{
    CUdeviceptr address;
    size_t free_now, total;

    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    return cuStreamSynchronize(stream) == CUDA_ERROR_ILLEGAL_ADDRESS &&
           cuMemAlloc(&address, 1) == CUDA_ERROR_ILLEGAL_ADDRESS &&
           cuMemGetInfo(&free_now, &total) == CUDA_ERROR_ILLEGAL_ADDRESS;
}

static int case_unmap(void)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;

    if (use_device(NULL) != 0) {
        return 1;
    }
    address = map_one(&handle);
    if (queue_work(address) != 0 || cuMemUnmap(address, SIZE) != 0 ||
        cuCtxSynchronize() != CUDA_ERROR_ILLEGAL_ADDRESS) { /* known at once */
        return 2;
    }
    return context_is_lost() ? 0 : 3;
}

static int case_unmap_waits(void)
{
    CUmemGenericAllocationHandle handle;
    pthread_t helper;
    CUdeviceptr address;

    if (use_device(NULL) != 0) {
        return 1;
    }
    address = map_one(&handle);
    if (queue_work(address) != 0 || pthread_create(&helper, NULL, stop_spinning_later, NULL) != 0) {
        return 2;
    }
    if (cuMemUnmap(address, SIZE) != 0 || __atomic_load_n(flag, __ATOMIC_ACQUIRE) != 1) {
        return 3;
    }
    pthread_join(helper, NULL);
    return cuStreamSynchronize(stream) == 0 ? 0 : 4;
}

static int case_free_waits(void)
{
    pthread_t helper;
    CUdeviceptr address = 0;

    if (use_device(NULL) != 0 || cuMemAlloc(&address, SIZE) != 0 || queue_work(address) != 0 ||
        pthread_create(&helper, NULL, stop_spinning_later, NULL) != 0) {
        return 1;
    }
    if (cuMemFree(address) != 0 || __atomic_load_n(flag, __ATOMIC_ACQUIRE) != 1) {
        return 2;
    }
    pthread_join(helper, NULL);
    return cuStreamSynchronize(stream) == 0 ? 0 : 3;
}

static int case_free(void)
{
    CUdeviceptr address = 0;

    if (use_device(NULL) != 0 || cuMemAlloc(&address, SIZE) != 0 || queue_work(address) != 0 ||
        cuMemFree(address) != 0) {
        return 1;
    }
    return context_is_lost() ? 0 : 2;
}

/* cuda.h: cuMemFree of memory of a pool does not synchronise. */
static int case_free_of_pool(void)
{
    CUdeviceptr address = 0;

    if (use_device(NULL) != 0 || cuMemAllocAsync(&address, SIZE, NULL) != 0 ||
        cuStreamSynchronize(NULL) != 0 || queue_work(address) != 0) {
        return 1;
    }
    return cuMemFree(address) == 0 && __atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0 ? 0 : 2;
}

/* A context that is lost is gone for good, but another one works. */
static int case_recovery(void)
{
    CUmemGenericAllocationHandle handle;
    CUcontext lost = NULL, fresh = NULL;
    CUdeviceptr address;

    if (cuInit(0) != 0 || cuCtxCreate(&lost, NULL, 0, 0) != 0) {
        return 1;
    }
    address = map_one(&handle);
    if (queue_work(address) != 0 || cuMemUnmap(address, SIZE) != 0 || !context_is_lost()) {
        return 2;
    }
    if (cuCtxDestroy(lost) != 0 || cuCtxCreate(&fresh, NULL, 0, 0) != 0) {
        return 3;
    }
    return cuMemAlloc(&address, SIZE) == 0 && cuMemsetD8(address, 1, SIZE) == 0 &&
                   cuMemRelease(handle) == 0
               ? 0
               : 4;
}

static void expect(const char *name, const char *setting, const char *said)
{
    char errors[512];

    assert_int_equal(run_case(name, errors, sizeof(errors), setting, NULL), 0);
    if (said != NULL) {
        assert_non_null(strstr(errors, said));
    } else {
        assert_string_equal(errors, "");
    }
}

static void test_unmapping(void **state)
{
    expect("unmap", "SPILLWAY_SIM_UNMAP_WAITS=off", "cuMemUnmap of 0x");
    expect("unmap waits", "SPILLWAY_SIM_UNMAP_WAITS=on", NULL);
}

static void test_freeing(void **state)
{
    expect("free", "SPILLWAY_SIM_FREE_SYNC=off", "cuMemFree of 0x");
    expect("free waits", "SPILLWAY_SIM_FREE_SYNC=on", NULL);
    expect("free of pool", "SPILLWAY_SIM_FREE_SYNC=on", NULL);
}

static void test_recovery(void **state)
{
    expect("recovery", "SPILLWAY_SIM_SEED=0", "cuMemUnmap of 0x");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"unmap", case_unmap},
        {"unmap waits", case_unmap_waits},
        {"free", case_free},
        {"free waits", case_free_waits},
        {"free of pool", case_free_of_pool},
        {"recovery", case_recovery},
        {NULL, NULL},
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unmapping),
        cmocka_unit_test(test_freeing),
        cmocka_unit_test(test_recovery),
    };
    int result = 0;

    return is_case(argc, argv, cases, &result) ? result : cmocka_run_group_tests(tests, NULL, NULL);
}
