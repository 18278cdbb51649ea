/* cuMemAlloc and its relatives, page-locked memory, and what can be asked about an address. */
#include "check.h"

#include <string.h>

#define BUDGET (64 * MIB + 12345) /* any byte count is legal */

static void test_sizes(void **state)
{
    CUdeviceptr first = 0, second = 0, address = 0;
    size_t total = 0, free_now = 0;

    OK(cuMemGetInfo(&free_now, &total));
    assert_int_equal(total, BUDGET);
    assert_int_equal(free_now, BUDGET);
    FAILS(cuMemAlloc(&address, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAlloc(NULL, 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAlloc(&address, BUDGET), CUDA_ERROR_OUT_OF_MEMORY);
    FAILS(cuMemAlloc(&address, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);

    /* Small blocks share a granule, in steps of 512 bytes. */
    OK(cuMemAlloc(&first, 1));
    OK(cuMemAlloc(&second, 513));
    assert_int_equal(free_bytes(), BUDGET - 2 * MIB);
    assert_int_equal(first % 512, 0);
    assert_int_equal(second, first + 512);
    OK(cuMemFree(first));
    assert_int_equal(free_bytes(), BUDGET - 2 * MIB);
    OK(cuMemFree(second));
    assert_int_equal(free_bytes(), BUDGET);

    /* Large ones are granules of their own. */
    OK(cuMemAlloc(&first, 2 * MIB + 1));
    assert_int_equal(free_bytes(), BUDGET - 4 * MIB);
    OK(cuMemFree(first));
    OK(cuMemAlloc(&first, 64 * MIB));
    FAILS(cuMemAlloc(&address, 1), CUDA_ERROR_OUT_OF_MEMORY); /* 12345 bytes are no granule */
    OK(cuMemFree(first));
    assert_int_equal(free_bytes(), BUDGET);
}

static void test_free_rules(void **state)
{
    CUdeviceptr address = 0;
    int local = 0;

    OK(cuMemAlloc(&address, 4096));
    FAILS(cuMemFree(address + 512), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemFree((CUdeviceptr)(uintptr_t)&local), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(address));
    FAILS(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(0));
}

static void test_pitch(void **state)
{
    CUdeviceptr address = 0;
    size_t pitch = 0;

    OK(cuMemAllocPitch(&address, &pitch, 1000, 10, 4));
    assert_int_equal(pitch, 1024);
    OK(cuMemFree(address));
    FAILS(cuMemAllocPitch(&address, &pitch, 1000, 10, 5), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAllocPitch(&address, &pitch, 0, 10, 4), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAllocPitch(&address, &pitch, 1 << 20, SIZE_MAX / 1024, 4), CUDA_ERROR_OUT_OF_MEMORY);
}

/* Many sizes in random order: nothing overlaps, contents stay, everything comes back. */
static void test_random_blocks(void **state)
{
    enum { COUNT = 64 };
    static struct {
        CUdeviceptr address;
        size_t size;
        unsigned char mark;
    } blocks[COUNT];
    uint32_t seed = 7;

    for (int step = 0; step < 4000; step++) {
        unsigned char edge[2] = {0};
        uint32_t i;

        seed = seed * 1664525u + 1013904223u;
        i = (seed >> 20) % COUNT;
        if (blocks[i].address != 0) {
            OK(cuMemcpyDtoH(&edge[0], blocks[i].address, 1));
            OK(cuMemcpyDtoH(&edge[1], blocks[i].address + blocks[i].size - 1, 1));
            assert_int_equal(edge[0], blocks[i].mark);
            assert_int_equal(edge[1], blocks[i].mark);
            OK(cuMemFree(blocks[i].address));
            blocks[i].address = 0;
            continue;
        }
        blocks[i].size = 1 + (seed >> 4) % ((seed & 8) != 0 ? 3000 : 3000000);
        blocks[i].mark = (unsigned char)step;
        if (cuMemAlloc(&blocks[i].address, blocks[i].size) != CUDA_SUCCESS) {
            blocks[i].address = 0;
            continue;
        }
        OK(cuMemsetD8(blocks[i].address, blocks[i].mark, blocks[i].size));
    }
    for (int i = 0; i < COUNT; i++) {
        if (blocks[i].address != 0) {
            OK(cuMemFree(blocks[i].address));
        }
    }
    assert_int_equal(free_bytes(), BUDGET);
}

static unsigned char byte_at(CUdeviceptr address)
{
    unsigned char byte = 0;

    OK(cuMemcpyDtoH(&byte, address, 1));
    return byte;
}

/* Fills and copies of any extent change exactly what they should, zeros and holes included. */
static void test_content(void **state)
{
    const size_t size = 5 * MIB, from = 12345, length = 3 * MIB + 77;
    CUdeviceptr address = 0, copy = 0;

    OK(cuMemAlloc(&address, size));
    OK(cuMemAlloc(&copy, size));
    assert_int_equal(byte_at(address + 99), 0); /* never written */
    OK(cuMemsetD8(address, 0xab, size));
    OK(cuMemsetD8(address + from, 0, length));
    assert_int_equal(byte_at(address + from - 1), 0xab);
    assert_int_equal(byte_at(address + from), 0);
    assert_int_equal(byte_at(address + from + length / 2), 0);
    assert_int_equal(byte_at(address + from + length - 1), 0);
    assert_int_equal(byte_at(address + from + length), 0xab);
    OK(cuMemsetD32(address + 4 * MIB, 0x01020304, 1000));
    assert_int_equal(byte_at(address + 4 * MIB + 3996), 4);
    assert_int_equal(byte_at(address + 4 * MIB + 3999), 1);
    assert_int_equal(byte_at(address + 4 * MIB + 4000), 0xab);

    OK(cuMemsetD8(copy, 0xcd, size));
    OK(cuMemcpyDtoD(copy + 1000, address + 1000, 4 * MIB)); /* with a hole in its middle */
    assert_int_equal(byte_at(copy + 999), 0xcd);
    assert_int_equal(byte_at(copy + 1000), 0xab);
    assert_int_equal(byte_at(copy + from), 0);
    assert_int_equal(byte_at(copy + from + length - 1), 0);
    assert_int_equal(byte_at(copy + from + length), 0xab);
    assert_int_equal(byte_at(copy + 1000 + 4 * MIB), 0xcd);
    OK(cuMemFree(copy));
    OK(cuMemFree(address));
}

static void test_address_range(void **state)
{
    CUdeviceptr address = 0, base = 0;
    size_t size = 0;

    OK(cuMemAlloc(&address, 5000));
    OK(cuMemGetAddressRange(&base, &size, address + 4999));
    assert_int_equal(base, address);
    assert_int_equal(size, 5000);
    OK(cuMemGetAddressRange(NULL, &size, address));
    OK(cuMemGetAddressRange(&base, NULL, address));
    OK(cuMemFree(address));
    FAILS(cuMemGetAddressRange(&base, &size, address), CUDA_ERROR_NOT_FOUND);
    FAILS(cuMemGetAddressRange(&base, &size, 4096), CUDA_ERROR_NOT_FOUND);
}

static unsigned int attribute(CUpointer_attribute which, CUdeviceptr address)
{
    unsigned int value[4] = {0};

    OK(cuPointerGetAttribute(value, which, address));
    return value[0];
}

static unsigned long long wide_attribute(CUpointer_attribute which, CUdeviceptr address)
{
    unsigned long long value = 0;

    OK(cuPointerGetAttribute(&value, which, address));
    return value;
}

static void test_attributes_of_a_block(void **state)
{
    CUdeviceptr address = 0, other = 0;
    CUcontext ctx = NULL, current = NULL;
    unsigned long long id;

    OK(cuCtxGetCurrent(&current));
    OK(cuMemAlloc(&address, 3 * MIB));
    assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 5),
                     CU_MEMORYTYPE_DEVICE);
    assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address), 0);
    assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_IS_MANAGED, address), 0);
    assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_MAPPED, address), 1);
    assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address), 1);
    assert_int_equal(wide_attribute(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address + 9), address);
    assert_int_equal(wide_attribute(CU_POINTER_ATTRIBUTE_RANGE_SIZE, address + 9), 3 * MIB);
    assert_int_equal(wide_attribute(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address), 0);
    assert_int_equal(wide_attribute(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address + 9), address + 9);
    FAILS(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_HOST_POINTER, address),
          CUDA_ERROR_INVALID_VALUE);
    OK(cuPointerGetAttribute(&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, address));
    assert_ptr_equal(ctx, current);

    id = wide_attribute(CU_POINTER_ATTRIBUTE_BUFFER_ID, address + 3 * MIB - 1);
    assert_int_equal(id, wide_attribute(CU_POINTER_ATTRIBUTE_BUFFER_ID, address));
    OK(cuMemAlloc(&other, 1));
    assert_int_not_equal(id, wide_attribute(CU_POINTER_ATTRIBUTE_BUFFER_ID, other));
    OK(cuMemFree(address));
    FAILS(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address),
          CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(other));
}

static void test_attributes_of_mapped_memory(void **state)
{
    CUmemGenericAllocationHandle handle = create_chunk(4 * MIB);
    CUdeviceptr address = reserve(8 * MIB);
    unsigned long long value = 0;

    assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_MAPPED, address), 0);
    FAILS(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
          CUDA_ERROR_INVALID_VALUE);
    OK(cuMemMap(address, 4 * MIB, 0, handle, 0));
    allow(address, 4 * MIB);
    assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_MAPPED, address), 1);
    assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address), CU_MEMORYTYPE_DEVICE);
    assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address), 0);
    /* cuda.h: the range is the reservation, the mapping is what is mapped. */
    assert_int_equal(wide_attribute(CU_POINTER_ATTRIBUTE_RANGE_SIZE, address + 3 * MIB), 8 * MIB);
    assert_int_equal(wide_attribute(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, address + 3 * MIB), 4 * MIB);
    OK(cuMemUnmap(address, 4 * MIB));
    OK(cuMemRelease(handle));
    OK(cuMemAddressFree(address, 8 * MIB));
}

static void test_attributes_of_unknown_addresses(void **state)
{
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                   CU_POINTER_ATTRIBUTE_BUFFER_ID};
    unsigned int type = 77, ordinal = 77;
    unsigned long long id = 77;
    void *data[] = {&type, &ordinal, &id};
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)which;

    FAILS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
          CUDA_ERROR_INVALID_VALUE);
    OK(cuPointerGetAttributes(3, which, data, address)); /* cuda.h: defaults instead of an error */
    assert_int_equal(type, 0);
    assert_int_equal((int)ordinal, CU_DEVICE_INVALID);
    assert_int_equal(id, 0);
    OK(cuMemAlloc(&address, 1));
    OK(cuPointerGetAttributes(3, which, data, address));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    assert_int_equal(ordinal, 0);
    assert_int_not_equal(id, 0);
    OK(cuMemFree(address));
}

static void test_pinned_memory(void **state)
{
    static char memory[8192];
    CUdeviceptr device = 0, at = (CUdeviceptr)(uintptr_t)memory;
    void *host = NULL, *more = NULL;
    unsigned int flags = 0;

    OK(cuMemHostAlloc(&host, 5 * MIB, CU_MEMHOSTALLOC_PORTABLE));
    memset(host, 1, 5 * MIB);
    FAILS(cuMemHostAlloc(&more, 4 * MIB, 0), CUDA_ERROR_OUT_OF_MEMORY); /* of 8 MiB */
    OK(cuMemHostGetFlags(&flags, host));
    assert_int_equal(flags, CU_MEMHOSTALLOC_PORTABLE);
    OK(cuMemHostGetDevicePointer(&device, host, 0));
    assert_int_equal(device, (CUdeviceptr)(uintptr_t)host);
    assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device), CU_MEMORYTYPE_HOST);
    assert_int_equal(wide_attribute(CU_POINTER_ATTRIBUTE_HOST_POINTER, device + 7), device + 7);
    FAILS(cuMemFree(device), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeHost(host));
    FAILS(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);

    OK(cuMemHostRegister(memory, sizeof(memory), 0));
    FAILS(cuMemHostRegister(memory + 4096, 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + 100), CU_MEMORYTYPE_HOST);
    FAILS(cuMemHostUnregister(memory + 1), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(cuMemHostUnregister(memory));
    FAILS(cuMemHostUnregister(memory), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    assert_int_equal(free_bytes(), BUDGET);
}

static void test_managed_memory(void **state)
{
    CUdeviceptr address = 0;

    OK(cuMemAllocManaged(&address, 3 * MIB, CU_MEM_ATTACH_GLOBAL));
    *(char *)(uintptr_t)(address + 3 * MIB - 1) = 'm';
    assert_int_equal(attribute(CU_POINTER_ATTRIBUTE_IS_MANAGED, address), 1);
    OK(cuMemFree(address));
    FAILS(cuMemAllocManaged(&address, 1, 0), CUDA_ERROR_INVALID_VALUE);
}

/* cuda.h: a context takes its memory with it, but not that of cuMemCreate. */
static void test_memory_ends_with_its_context(void **state)
{
    CUmemGenericAllocationHandle handle;
    CUcontext ctx = NULL;
    CUdeviceptr address = 0;
    void *host = NULL;

    OK(cuCtxCreate(&ctx, NULL, 0, 0));
    OK(cuMemAlloc(&address, 10 * MIB));
    OK(cuMemAlloc(&address, 10));
    OK(cuMemAllocHost(&host, 6 * MIB));
    handle = create_chunk(2 * MIB);
    OK(cuCtxDestroy(ctx));
    assert_int_equal(free_bytes(), BUDGET - 2 * MIB);
    OK(cuMemAllocHost(&host, 6 * MIB));
    OK(cuMemFreeHost(host));
    OK(cuMemRelease(handle));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_free_rules),
        cmocka_unit_test(test_pitch),
        cmocka_unit_test(test_random_blocks),
        cmocka_unit_test(test_content),
        cmocka_unit_test(test_address_range),
        cmocka_unit_test(test_attributes_of_a_block),
        cmocka_unit_test(test_attributes_of_mapped_memory),
        cmocka_unit_test(test_attributes_of_unknown_addresses),
        cmocka_unit_test(test_pinned_memory),
        cmocka_unit_test(test_managed_memory),
        cmocka_unit_test(test_memory_ends_with_its_context),
    };

    setenv("SPILLWAY_SIM_MEMORY", "67121209", 1);
    setenv("SPILLWAY_SIM_HOST_MEMORY", "8MiB", 1);
    return cmocka_run_group_tests(tests, use_device, NULL);
}
