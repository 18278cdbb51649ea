/* The memory that NCCL's communicators take where devices hold what a card does, and its end. */
#include "cases.h"

#include <nccl.h>

#define CREATED    (32 * 6 * MIB)  /* 32 channels */
#define SMALL      (2 * MIB)       /* the buffer that stands for others */
#define RING       (24 * 12 * MIB) /* 24 channels */
#define PEER       (32 * 14 * MIB)

#define GOOD(call) assert_int_equal((call), ncclSuccess)

static ncclComm_t comms[3];

static size_t free_on(int device)
{
    CUcontext ctx, before;
    size_t bytes;

    OK(cuCtxGetCurrent(&before));
    OK(cuDevicePrimaryCtxRetain(&ctx, device));
    OK(cuCtxSetCurrent(ctx));
    bytes = free_bytes();
    OK(cuCtxSetCurrent(before));
    return bytes;
}

static void destroy(int count)
{
    for (int i = 0; i < count; i++) {
        GOOD(ncclCommDestroy(comms[i]));
    }
}

/* Ranks connect at the first operation that needs it; two ranks need no tree. */
static void test_connections(void **state)
{
    size_t before = free_on(0);
    CUdeviceptr data;

    free_on(1);
    OK(cuMemAlloc(&data, 2 * MIB));
    before -= 2 * MIB;
    GOOD(ncclCommInitAll(comms, 2, NULL));
    before -= CREATED + SMALL;
    assert_int_equal(free_on(0), before);
    for (int i = 0; i < 2; i++) {
        GOOD(ncclAllReduce((void *)data, (void *)data, 256, ncclInt, ncclSum, comms[0], NULL));
        assert_int_equal(free_on(0), before - RING);
    }
    GOOD(ncclSend((void *)data, 256, ncclInt, 1, comms[0], NULL));
    GOOD(ncclRecv((void *)data, 256, ncclInt, 1, comms[0], NULL));
    GOOD(ncclSend((void *)data, 256, ncclInt, 0, comms[0], NULL));
    assert_int_equal(free_on(0), before - RING - PEER);
    destroy(2);
    assert_int_equal(free_on(0), before + CREATED + SMALL);
    OK(cuMemFree(data));
}

static void test_three_ranks(void **state)
{
    size_t before = free_on(0);
    CUdeviceptr data;

    OK(cuMemAlloc(&data, 2 * MIB));
    before -= 2 * MIB + CREATED + SMALL;
    GOOD(ncclCommInitAll(comms, 3, NULL));
    GOOD(ncclBroadcast((void *)data, (void *)data, 256, ncclInt, 0, comms[0], NULL));
    assert_int_equal(free_on(0), before - RING);
    GOOD(ncclAllReduce((void *)data, (void *)data, 256, ncclInt, ncclSum, comms[0], NULL));
    assert_int_equal(free_on(0), before - 2 * RING);
    destroy(3);
    OK(cuMemFree(data));
}

/* A full device fails as it would on a card, and nothing stays taken. */
static void test_full(void **state)
{
    size_t all = free_on(0);
    CUdeviceptr rest;

    OK(cuMemAlloc(&rest, all - CREATED));
    assert_int_equal(ncclCommInitAll(comms, 2, NULL), ncclUnhandledCudaError);
    assert_int_equal(free_on(0), CREATED);
    OK(cuMemFree(rest));
    OK(cuMemAlloc(&rest, all - CREATED - SMALL - MIB));
    GOOD(ncclCommInitAll(comms, 2, NULL));
    assert_int_equal(ncclAllReduce((void *)rest, (void *)rest, 1, ncclInt, ncclSum, comms[0], NULL),
                     ncclUnhandledCudaError);
    assert_string_equal(ncclGetLastError(comms[0]), "out of device memory for buffers of NCCL");
    destroy(2);
    OK(cuMemFree(rest));
    assert_int_equal(free_on(0), all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connections),
        cmocka_unit_test(test_three_ranks),
        cmocka_unit_test(test_full),
    };

    setenv("SPILLWAY_SIM_OVERHEAD", "on", 1);
    setenv("SPILLWAY_SIM_DEVICES", "3", 1);
    setenv("SPILLWAY_SIM_MEMORY", "8GiB", 1);
    return cmocka_run_group_tests(tests, use_device, NULL);
}
