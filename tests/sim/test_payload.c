/* The host memory that the content of simulated memory takes: bounded by SPILLWAY_SIM_PAYLOAD, and
 * given back with the memory that holds it. */
#include "cases.h"

#include <sys/mman.h>

#include "sim/driver/core/control.h"

#define LIMIT (8 * MIB)

static unsigned char *pattern; /* LIMIT bytes without a zero */

static size_t content(void)
{
    return (size_t)spillway_sim_payload(NULL);
}

static size_t dropped(void)
{
    unsigned long long bytes = 0;

    (void)spillway_sim_payload(&bytes);
    return (size_t)bytes;
}

static unsigned char byte_at(CUdeviceptr address)
{
    unsigned char byte = 0xee;

    OK(cuMemcpyDtoH(&byte, address, 1));
    return byte;
}

static CUdeviceptr allocate(size_t size)
{
    CUdeviceptr address = 0;

    OK(cuMemAlloc(&address, size));
    return address;
}

/* This process's private memory, in bytes. */
static size_t private_bytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    size_t kib = 0;

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "RssAnon:", 8) == 0) {
            kib = strtoul(line + 8, NULL, 10);
        }
    }
    fclose(file);
    return kib << 10;
}

/* Content goes with cuMemFree: of memory of its own, and of small blocks that share some. */
static void test_free_gives_back(void **state)
{
    CUdeviceptr large = allocate(4 * MIB), small = allocate(MIB), neighbour = allocate(MIB);

    OK(cuMemcpyHtoD(large, pattern, 4 * MIB));
    OK(cuMemcpyHtoD(small, pattern, MIB));
    assert_int_equal(content(), 5 * MIB);
    OK(cuMemFree(large));
    assert_int_equal(content(), MIB);
    OK(cuMemFree(small)); /* the neighbour keeps the granule */
    assert_int_equal(content(), 0);
    OK(cuMemFree(neighbour));
}

static void test_unmapping_gives_back(void **state)
{
    CUmemGenericAllocationHandle handle = create_chunk(4 * MIB);
    CUdeviceptr address = reserve(4 * MIB);

    OK(cuMemMap(address, 4 * MIB, 0, handle, 0));
    allow(address, 4 * MIB);
    OK(cuMemcpyHtoD(address, pattern, 4 * MIB));
    OK(cuMemUnmap(address, 4 * MIB));
    assert_int_equal(content(), 4 * MIB); /* the handle still holds it */
    OK(cuMemRelease(handle));
    assert_int_equal(content(), 0);
    OK(cuMemAddressFree(address, 4 * MIB));
}

/* A pool that keeps its memory does not keep what was in it. */
static void test_pools_give_back(void **state)
{
    cuuint64_t everything = UINT64_MAX, reserved = 0;
    CUmemoryPool pool = NULL;
    CUdeviceptr address = 0;

    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &everything));
    OK(cuMemAllocAsync(&address, 4 * MIB, NULL));
    OK(cuMemcpyHtoDAsync(address, pattern, 4 * MIB, NULL));
    OK(cuStreamSynchronize(NULL));
    assert_int_equal(content(), 4 * MIB);
    OK(cuMemFreeAsync(address, NULL));
    OK(cuStreamSynchronize(NULL));
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
    assert_true(reserved >= 4 * MIB);
    assert_int_equal(content(), 0);
    OK(cuMemPoolTrimTo(pool, 0));
}

static void test_pinned_memory_is_given_back(void **state)
{
    const size_t size = 64 * MIB;
    size_t before = private_bytes();
    void *pinned = NULL;

    OK(cuMemHostAlloc(&pinned, size, 0));
    memset(pinned, 1, size);
    assert_true(private_bytes() >= before + size);
    OK(cuMemFreeHost(pinned));
    assert_true(private_bytes() < before + size / 4);
}

/* Memory that was never written takes no host memory when it is moved to the host and back. */
static void test_emptiness_travels(void **state)
{
    const size_t size = 64 * MIB;
    CUdeviceptr address = allocate(size);
    unsigned char *pinned = NULL;
    size_t before;

    OK(cuMemHostAlloc((void **)&pinned, size, 0));
    memset(pinned, 1, size);
    before = private_bytes();
    OK(cuMemcpyHtoD(address + size / 2, pattern, 3)); /* all but this is empty */
    OK(cuMemcpyDtoH(pinned + 1, address, size - 1));
    assert_int_equal(pinned[0], 1);
    assert_int_equal(pinned[1], 0);
    assert_int_equal(pinned[size - 1], 0);
    assert_memory_equal(pinned + 1 + size / 2, pattern, 3);
    assert_true(private_bytes() < before - size / 2);

    OK(cuMemcpyHtoD(address, pinned + 1, size - 1));
    assert_true(content() < MIB);
    assert_int_equal(byte_at(address + size / 2 + 2), pattern[2]);
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree(address));
    assert_int_equal(content(), 0);
}

/* Beyond the limit large copies move nothing, small ones everything. Its stderr is looked at. */
static int leave_out(void)
{
    CUdeviceptr first, second;

    if (use_device(NULL) != 0) {
        return 1;
    }
    first = allocate(LIMIT);
    second = allocate(LIMIT);
    OK(cuMemcpyHtoD(first, pattern, LIMIT));
    assert_int_equal(dropped(), 0);
    OK(cuMemcpyHtoD(first, pattern, LIMIT)); /* over itself: takes no more than before */
    assert_int_equal(dropped(), 0);
    OK(cuMemcpyHtoD(second, pattern, 3)); /* small: always */
    assert_int_equal(byte_at(second + 2), pattern[2]);

    OK(cuMemcpyHtoD(second, pattern, 2 * MIB));
    assert_int_equal(dropped(), 2 * MIB);
    assert_int_equal(byte_at(second + 2), 0);
    OK(cuMemcpyDtoD(second, first, LIMIT));
    OK(cuMemsetD8(second, 1, LIMIT));
    assert_int_equal(dropped(), 2 * MIB + 2 * LIMIT);
    assert_int_equal(byte_at(second + LIMIT - 1), 0);
    assert_int_equal(content(), LIMIT);

    /* Content can be read back, and there is room again once it is freed. */
    memset(pattern, 0, LIMIT);
    OK(cuMemcpyDtoH(pattern, first, LIMIT));
    assert_int_equal(pattern[0], 1);
    assert_int_equal(pattern[LIMIT - 1], 1 + (LIMIT - 1) % 255);
    OK(cuMemFree(first));
    OK(cuMemcpyHtoD(second, pattern, LIMIT));
    assert_int_equal(byte_at(second + LIMIT - 1), pattern[LIMIT - 1]);
    assert_int_equal(dropped(), 2 * MIB + 2 * LIMIT);
    return 0;
}

/* A quarter of what the host has: some hundred MiB at least, where tests run at all. */
static int leave_nothing_out(void)
{
    CUdeviceptr address;

    if (use_device(NULL) != 0) {
        return 1;
    }
    for (int i = 0; i < 8; i++) {
        address = allocate(LIMIT);
        OK(cuMemcpyHtoD(address, pattern, LIMIT));
    }
    return dropped() == 0 ? 0 : 1;
}

static const struct test_case cases[] = {
    {"leave_out", leave_out}, {"leave_nothing_out", leave_nothing_out}, {NULL, NULL}};

static void test_limit(void **state)
{
    char errors[4096];
    const char *line;

    assert_int_equal(
        run_case("leave_out", errors, sizeof(errors), "SPILLWAY_SIM_PAYLOAD=8MiB", (char *)NULL),
        0);
    line = strstr(errors, "SPILLWAY_SIM_PAYLOAD allows 8 MiB");
    assert_non_null(line);
    assert_null(strstr(line + 1, "SPILLWAY_SIM_PAYLOAD"));
    assert_string_equal(strchr(line, '\n'), "\n"); /* one line */
}

static void test_default_limit(void **state)
{
    char errors[4096];

    assert_int_equal(run_case("leave_nothing_out", errors, sizeof(errors),
                              "SPILLWAY_SIM_PAYLOAD=", (char *)NULL),
                     0);
    assert_string_equal(errors, "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_free_gives_back),
        cmocka_unit_test(test_unmapping_gives_back),
        cmocka_unit_test(test_pools_give_back),
        cmocka_unit_test(test_pinned_memory_is_given_back),
        cmocka_unit_test(test_emptiness_travels),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_default_limit),
    };
    int result;

    pattern = malloc(LIMIT);
    if (pattern == NULL) {
        return 1;
    }
    for (size_t i = 0; i < LIMIT; i++) {
        pattern[i] = (unsigned char)(1 + i % 255);
    }
    if (!is_case(argc, argv, cases, &result)) {
        result = cmocka_run_group_tests(tests, use_device, NULL);
    }
    free(pattern);
    return result;
}
