/* Copies and memsets that the driver may refuse: those that cross from device to host memory, and
 * those that reach memory of another device without access. */
#include "check.h"

/* Two chunks behind each other: the first on device 0, the second on the host. */
static CUdeviceptr map_both(void)
{
    CUmemAllocationProp prop = device_memory(0);
    CUmemGenericAllocationHandle device = create_chunk(2 * MIB), host = 0;
    CUdeviceptr address = reserve(4 * MIB);

    prop.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0};
    OK(cuMemCreate(&host, 2 * MIB, &prop, 0));
    OK(cuMemMap(address, 2 * MIB, 0, device, 0));
    OK(cuMemMap(address + 2 * MIB, 2 * MIB, 0, host, 0));
    allow(address, 4 * MIB);
    OK(cuMemRelease(device));
    OK(cuMemRelease(host));
    return address;
}

static void unmap_both(CUdeviceptr address)
{
    OK(cuMemUnmap(address, 4 * MIB));
    OK(cuMemAddressFree(address, 4 * MIB));
}

static void test_crossing_is_refused(void **state)
{
    CUdeviceptr address = map_both(), middle = address + 2 * MIB;
    unsigned char bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8}, got[8] = {0};
    const CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = bytes,
                                .srcPitch = 4,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = middle - 64,
                                .dstPitch = 64,
                                .WidthInBytes = 4,
                                .Height = 2};

    FAILS(cuMemcpyHtoD(middle - 4, bytes, 8), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemcpyDtoH(got, middle - 4, 8), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemcpyDtoD(address, middle - 4, 8), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemcpy2D(&rows), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemsetD8(middle - 4, 1, 8), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemcpyHtoD(middle - 4, bytes, 4));
    OK(cuMemcpyHtoD(middle, bytes + 4, 4));
    OK(cuMemcpyDtoH(got, middle - 4, 4));
    OK(cuMemcpyDtoH(got + 4, middle, 4));
    assert_memory_equal(got, bytes, 8);
    OK(cuMemsetD32(address, 1, 2 * MIB / 4));
    OK(cuMemcpyDtoD(middle, address, 2 * MIB)); /* between the two, neither crosses */
    unmap_both(address);
}

static void test_reach_needs_access(void **state)
{
    CUmemAllocationProp prop = device_memory(1);
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr mapped = reserve(2 * MIB), plain = 0, here = 0;
    CUmemAccessDesc own = read_write(1), both[2] = {read_write(0), read_write(1)};
    CUcontext current = NULL, peer = NULL;

    OK(cuCtxGetCurrent(&current));
    OK(cuDevicePrimaryCtxRetain(&peer, 1));
    OK(cuCtxSetCurrent(peer));
    OK(cuMemAlloc(&plain, 1024));
    OK(cuCtxSetCurrent(current));
    OK(cuMemAlloc(&here, 1024));
    OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    OK(cuMemMap(mapped, 2 * MIB, 0, handle, 0));
    OK(cuMemSetAccess(mapped, 2 * MIB, &own, 1));

    OK(cuMemcpyDtoD(here, plain, 1024)); /* the driver knows a way */
    FAILS(cuMemcpyDtoD(here, mapped, 1024), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemcpyDtoD(mapped, here, 1024), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemcpyPeer(here, current, mapped, peer, 1024));
    OK(cuMemcpyPeer(mapped, peer, here, current, 1024));
    FAILS(cuMemcpyPeer(mapped, current, here, current, 1024), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemSetAccess(mapped, 2 * MIB, both, 2));
    OK(cuMemcpyDtoD(here, mapped, 1024));

    OK(cuMemUnmap(mapped, 2 * MIB));
    OK(cuMemRelease(handle));
    OK(cuMemAddressFree(mapped, 2 * MIB));
    OK(cuMemFree(plain));
    OK(cuMemFree(here));
    OK(cuDevicePrimaryCtxRelease(1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crossing_is_refused),
        cmocka_unit_test(test_reach_needs_access),
    };

    setenv("SPILLWAY_SIM_DEVICES", "2", 1);
    setenv("SPILLWAY_SIM_CROSSING", "refused", 1);
    setenv("SPILLWAY_SIM_REACH", "granted", 1);
    return cmocka_run_group_tests(tests, use_device, NULL);
}
