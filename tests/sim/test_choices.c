/* The other answer to each question the documentation leaves open (the options' non-default), and
 * mappings in the tables only. */
#include "check.h"

#include <sys/mman.h>

static void test_one_mapping_per_call(void **state)
{
    CUmemGenericAllocationHandle first = create_chunk(2 * MIB), second = create_chunk(2 * MIB);
    CUdeviceptr address = reserve(4 * MIB);
    CUmemAccessDesc desc = read_write(0);

    OK(cuMemMap(address, 2 * MIB, 0, first, 0));
    OK(cuMemMap(address + 2 * MIB, 2 * MIB, 0, second, 0));
    FAILS(cuMemSetAccess(address, 4 * MIB, &desc, 1), CUDA_ERROR_INVALID_VALUE);
    allow(address, 2 * MIB);
    allow(address + 2 * MIB, 2 * MIB);
    FAILS(cuMemUnmap(address, 4 * MIB), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemUnmap(address, 2 * MIB));
    OK(cuMemUnmap(address + 2 * MIB, 2 * MIB));
    OK(cuMemRelease(first));
    OK(cuMemRelease(second));
    OK(cuMemAddressFree(address, 4 * MIB));
}

static void test_host_locations_are_refused(void **state)
{
    CUmemAllocationProp prop = device_memory(0);
    CUmemGenericAllocationHandle handle;
    int value = 1;

    prop.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0};
    FAILS(cuMemCreate(&handle, 2 * MIB, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuDeviceGetAttribute(&value,
                            CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    assert_int_equal(value, 0);
}

static void test_no_peers(void **state)
{
    CUmemAllocationProp prop = device_memory(1);
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = reserve(2 * MIB);
    CUmemAccessDesc desc = read_write(0);
    CUcontext peer = NULL;
    int possible = 1;

    OK(cuDeviceCanAccessPeer(&possible, 0, 1));
    assert_int_equal(possible, 0);
    OK(cuDevicePrimaryCtxRetain(&peer, 1));
    FAILS(cuCtxEnablePeerAccess(peer, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    OK(cuDevicePrimaryCtxRelease(1));
    OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    OK(cuMemMap(address, 2 * MIB, 0, handle, 0));
    FAILS(cuMemSetAccess(address, 2 * MIB, &desc, 1), CUDA_ERROR_INVALID_DEVICE);
    OK(cuMemUnmap(address, 2 * MIB));
    OK(cuMemRelease(handle));
    OK(cuMemAddressFree(address, 2 * MIB));
}

/* Virtual memory calls are harmless to a global-mode capture by default; cuMemAlloc is not. */
static void test_capture_survives_mapping(void **state)
{
    CUmemAllocationProp prop = device_memory(0);
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr address = reserve(2 * MIB);
    CUstream stream = NULL;
    CUgraph graph = NULL;

    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    OK(cuMemMap(address, 2 * MIB, 0, handle, 0));
    allow(address, 2 * MIB);
    OK(cuMemUnmap(address, 2 * MIB));
    OK(cuMemRelease(handle));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphDestroy(graph));

    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    FAILS(cuMemAlloc(&address, 1), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    FAILS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuStreamDestroy(stream));
}

/* A reservation that is not really made works all the same. */
static void test_addresses_that_are_not_real(void **state)
{
    CUmemGenericAllocationHandle handle = create_chunk(2 * MIB), other = create_chunk(2 * MIB);
    CUdeviceptr address = reserve(8 * GIB), block = 0;
    unsigned char bytes[3] = {'u', 'v', 'w'}, got[3] = {0};

    assert_true(address >= UINT64_C(1) << 47); /* beyond what a process has */
    OK(cuMemMap(address + 4 * GIB, 2 * MIB, 0, handle, 0));
    OK(cuMemMap(address + 4 * GIB + 2 * MIB, 2 * MIB, 0, other, 0));
    allow(address + 4 * GIB, 2 * MIB);
    allow(address + 4 * GIB + 2 * MIB, 2 * MIB);
    OK(cuMemcpyHtoD(address + 4 * GIB + 2 * MIB - 1, bytes, 3)); /* across the two */
    OK(cuMemcpyDtoH(got, address + 4 * GIB + 2 * MIB - 1, 3));
    assert_memory_equal(got, bytes, 3);
    OK(cuMemAlloc(&block, 3 * MIB));
    OK(cuMemcpyDtoD(block + 77, address + 4 * GIB + 2 * MIB - 1, 3));
    OK(cuMemcpyDtoH(got, block + 78, 1));
    assert_int_equal(got[0], 'v');
    OK(cuMemFree(block));
    OK(cuMemUnmap(address + 4 * GIB, 2 * MIB));
    OK(cuMemUnmap(address + 4 * GIB + 2 * MIB, 2 * MIB));
    OK(cuMemRelease(handle));
    OK(cuMemRelease(other));
    OK(cuMemAddressFree(address, 8 * GIB));
}

/* Beyond the number of kernel mappings allowed, content is still right. */
static void test_mappings_beyond_the_limit(void **state)
{
    enum { COUNT = 64 };
    CUmemGenericAllocationHandle handles[COUNT];
    CUdeviceptr address = reserve(COUNT * 4 * MIB);
    unsigned char page[1];
    int real = 0;

    for (unsigned char i = 0; i < COUNT; i++) {
        CUdeviceptr at = address + i * 4 * MIB; /* a gap after each, so that none merge */

        handles[i] = create_chunk(2 * MIB);
        OK(cuMemMap(at, 2 * MIB, 0, handles[i], 0));
        allow(at, 2 * MIB);
        OK(cuMemsetD8(at, (unsigned char)(i + 1), 2 * MIB));
        /* Only a mapping of the file has the page that was just written. */
        real += mincore((void *)(uintptr_t)at, 4096, page) == 0 && (page[0] & 1) != 0;
    }
    assert_int_equal(real, 8); /* two kernel mappings each, 16 are allowed */
    for (unsigned char i = 0; i < COUNT; i++) {
        unsigned char byte = 0;

        OK(cuMemcpyDtoH(&byte, address + i * 4 * MIB + MIB, 1));
        assert_int_equal(byte, i + 1);
        OK(cuMemUnmap(address + i * 4 * MIB, 2 * MIB));
        OK(cuMemRelease(handles[i]));
    }
    OK(cuMemAddressFree(address, COUNT * 4 * MIB));
}

/* The kernel's mappings in a range, all of them or those that the process can read. */
static int kernel_mappings(CUdeviceptr start, size_t size, bool readable)
{
    FILE *file = fopen("/proc/self/maps", "r");
    unsigned long long low, high;
    char access, rest[512];
    int count = 0;

    assert_non_null(file);
    while (fscanf(file, "%llx-%llx %c%511[^\n]", &low, &high, &access, rest) == 4) {
        count += low < start + size && high > start && (!readable || access == 'r');
    }
    fclose(file);
    return count;
}

#define SLOT (2 * MIB)

static void map_slot(CUdeviceptr address, CUmemGenericAllocationHandle handle)
{
    OK(cuMemMap(address, SLOT, 0, handle, 0));
    allow(address, SLOT);
}

/* Holes count as well. What the kernel keeps instead goes with what is around it. */
static void test_holes_beyond_the_limit(void **state)
{
    enum { COUNT = 64 };
    CUmemGenericAllocationHandle handles[COUNT];
    CUdeviceptr address = reserve(COUNT * SLOT);

    for (int i = 0; i < COUNT; i++) {
        handles[i] = create_chunk(SLOT);
        map_slot(address + i * SLOT, handles[i]);
    }
    assert_int_equal(kernel_mappings(address, COUNT * SLOT, false), 1); /* all merged */
    for (int i = 1; i < COUNT; i += 2) {
        OK(cuMemUnmap(address + i * SLOT, SLOT));
    }
    assert_int_equal(kernel_mappings(address, COUNT * SLOT, false), 16);
    map_slot(address + 41 * SLOT, handles[1]); /* does not merge where no hole was made */
    assert_in_range(kernel_mappings(address, COUNT * SLOT, false), 1, 16);
    OK(cuMemUnmap(address + 41 * SLOT, SLOT));
    map_slot(address + 43 * SLOT, handles[43]); /* merges as it did before */
    for (int i = 16; i < COUNT; i += 4) {
        OK(cuMemUnmap(address + i * SLOT, SLOT)); /* no holes beside it */
        assert_in_range(kernel_mappings(address, COUNT * SLOT, false), 1, 16);
    }
    OK(cuMemUnmap(address + 50 * SLOT, SLOT));
    for (int i = 2; i < 14; i += 2) {
        OK(cuMemUnmap(address + i * SLOT, SLOT)); /* makes room for holes */
    }
    map_slot(address + 50 * SLOT, handles[50]);
    assert_int_equal(kernel_mappings(address + 50 * SLOT, SLOT, true), 1);
    assert_int_equal(kernel_mappings(address + 49 * SLOT, SLOT, true), 0);
    assert_int_equal(kernel_mappings(address + 51 * SLOT, SLOT, true), 0);
    for (int i = 14; i < COUNT; i += 4) {
        OK(cuMemUnmap(address + i * SLOT, SLOT));
        assert_in_range(kernel_mappings(address, COUNT * SLOT, false), 1, 16);
    }
    assert_int_equal(kernel_mappings(address, COUNT * SLOT, true), 2); /* 0 and 43 */
    OK(cuMemUnmap(address, SLOT));
    OK(cuMemUnmap(address + 43 * SLOT, SLOT));
    assert_int_equal(kernel_mappings(address, COUNT * SLOT, true), 0);
    for (int i = 0; i < COUNT; i++) {
        OK(cuMemRelease(handles[i]));
    }
    OK(cuMemAddressFree(address, COUNT * SLOT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_mapping_per_call),
        cmocka_unit_test(test_host_locations_are_refused),
        cmocka_unit_test(test_no_peers),
        cmocka_unit_test(test_capture_survives_mapping),
        cmocka_unit_test(test_addresses_that_are_not_real),
        cmocka_unit_test(test_mappings_beyond_the_limit),
        cmocka_unit_test(test_holes_beyond_the_limit),
    };

    setenv("SPILLWAY_SIM_DEVICES", "2", 1);
    setenv("SPILLWAY_SIM_UNMAP", "chunk", 1);
    setenv("SPILLWAY_SIM_SETACCESS", "chunk", 1);
    setenv("SPILLWAY_SIM_HOST_NUMA", "off", 1);
    setenv("SPILLWAY_SIM_PEERS", "off", 1);
    setenv("SPILLWAY_SIM_VA_MAX", "2GiB", 1);
    setenv("SPILLWAY_SIM_MAP_MAX", "16", 1);
    return cmocka_run_group_tests(tests, use_device, NULL);
}
