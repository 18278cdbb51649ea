/* Helpers of the tests of the simulated driver. Each program sets its environment before the first
 * driver call, in main(), where it differs from the defaults. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <cuda.h>

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* The call succeeds, or fails with exactly this code. */
#define OK(call)          assert_int_equal((call), CUDA_SUCCESS)
#define FAILS(call, code) assert_int_equal((call), (code))

/* Initialises and makes the primary context of device 0 current. */
static inline int use_device(void **state)
{
    CUcontext ctx;

    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&ctx, 0) != CUDA_SUCCESS ||
        cuCtxSetCurrent(ctx) != CUDA_SUCCESS) {
        return -1;
    }
    return 0;
}

static inline size_t free_bytes(void)
{
    size_t free_now = 0, total = 0;

    OK(cuMemGetInfo(&free_now, &total));
    return free_now;
}

static inline CUmemAllocationProp device_memory(int device)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
}

static inline CUmemGenericAllocationHandle create_chunk(size_t size)
{
    CUmemAllocationProp prop = device_memory(0);
    CUmemGenericAllocationHandle handle = 0;

    OK(cuMemCreate(&handle, size, &prop, 0));
    return handle;
}

static inline CUdeviceptr reserve(size_t size)
{
    CUdeviceptr address = 0;

    OK(cuMemAddressReserve(&address, size, 0, 0, 0));
    return address;
}

static inline CUmemAccessDesc read_write(int device)
{
    return (CUmemAccessDesc){
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
}

static inline void allow(CUdeviceptr address, size_t size)
{
    CUmemAccessDesc desc = read_write(0);

    OK(cuMemSetAccess(address, size, &desc, 1));
}
