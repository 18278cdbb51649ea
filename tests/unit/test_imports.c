/* Blocks of other processes over a driver in plain memory: what is mapped and taken away again,
 * which handles mean one block, and blocks of which the other process tells what cannot be. */
#include "serve/imports.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_driver.h"
#include "malloc_faults.h"
#include "device/state.h"

enum { G = FAKE_DRIVER_GRANULE, MOST = 4, OFFSET = 512, BYTES = G + 4096 };

static const struct spw_ipc_handle handle = {.pid = 7, .start = 8, .export_id = 9, .key = {1}};

/* Addresses are reserved one behind the other; imports succeed so often, or for ever (-1). */
static uint64_t next_address;
static size_t reservations;
static int imports_left;
static CUresult import_result;

struct spw_driver *spw_process_load(bool load)
{
    return &fake_driver.driver;
}

static CUresult CUDAAPI reserve(CUdeviceptr *ret_address, size_t bytes, size_t alignment,
                                CUdeviceptr address, unsigned long long flags)
{
    *ret_address = next_address;
    next_address += bytes;
    reservations++;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI refuse_reserve(CUdeviceptr *ret_address, size_t bytes, size_t alignment,
                                       CUdeviceptr address, unsigned long long flags)
{
    return import_result;
}

static CUresult CUDAAPI unreserve(CUdeviceptr address, size_t bytes)
{
    reservations--;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI import_chunk(CUmemGenericAllocationHandle *ret_handle, void *from,
                                     CUmemAllocationHandleType type)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};

    assert_int_equal(type, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    assert_true(fcntl((int)(intptr_t)from, F_GETFD) >= 0);
    if (imports_left == 0) {
        return import_result;
    }
    imports_left -= imports_left > 0;
    return fake_driver.driver.cuMemCreate(ret_handle, G, &prop, 0);
}

static int setup(void **state)
{
    atomic_store(&spw_process.driver, fake_driver_reset());
    fake_driver.driver.cuMemAddressReserve = reserve;
    fake_driver.driver.cuMemAddressFree = unreserve;
    fake_driver.driver.cuMemImportFromShareableHandle = import_chunk;
    next_address = FAKE_DRIVER_BASE;
    reservations = 0;
    imports_left = -1;
    spw_devices.count = 1;
    return 0;
}

static int teardown(void **state)
{
    assert_int_equal(fake_driver.violations, 0);
    assert_int_equal(fake_driver_chunk_count(), 0);
    assert_int_equal(fake_driver_mapped_count(), 0);
    assert_int_equal(reservations, 0);
    assert_null(fake_driver_current());
    return 0;
}

/* A block in chunks of one granule each, as it was fetched. */
static struct spw_ipc_block fetched(size_t count, uint64_t offset, uint64_t bytes)
{
    struct spw_ipc_block block = {.offset = offset,
                                  .bytes = bytes,
                                  .count = count,
                                  .fds = calloc(MOST, sizeof(*block.fds)),
                                  .chunks = calloc(MOST, sizeof(*block.chunks))};

    for (size_t i = 0; i < count; i++) {
        block.chunks[i] = G;
        block.fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_true(block.fds[i] >= 0);
    }
    return block;
}

/* Frees what is left of it, as its owner does. Returns how many descriptors were still open. */
static size_t end(struct spw_ipc_block *block)
{
    size_t left = 0;

    for (size_t i = 0; i < block->count; i++) {
        if (block->fds[i] >= 0) {
            assert_int_equal(close(block->fds[i]), 0);
            left++;
        }
    }
    free(block->fds);
    free(block->chunks);
    return left;
}

static CUresult map_as(const struct spw_ipc_handle *as, size_t context, CUdeviceptr *ret_address)
{
    struct spw_ipc_block block = fetched(2, OFFSET, BYTES);
    CUresult result =
        spw_serve_imports_map(as, fake_driver_context(context), 0, &block, ret_address);

    (void)end(&block);
    return result;
}

static CUdeviceptr map(const struct spw_ipc_handle *as, size_t context)
{
    CUdeviceptr address = 0;

    assert_int_equal(map_as(as, context, &address), CUDA_SUCCESS);
    return address;
}

static bool is_known(CUdeviceptr address)
{
    CUdeviceptr base;
    size_t bytes;

    return spw_serve_imports_find(address, &base, &bytes);
}

static void close_once(CUdeviceptr address)
{
    CUresult result = CUDA_ERROR_UNKNOWN;

    assert_true(spw_serve_imports_close(address, &result));
    assert_int_equal(result, CUDA_SUCCESS);
}

/* ---- mapping ---- */

/* The block lies where it does in its chunks, and is known from its first byte to its last. */
static void test_map(void **state)
{
    struct spw_ipc_block block = fetched(2, OFFSET, BYTES);
    CUdeviceptr address = 0, base = 0;
    size_t bytes = 0;
    CUresult result;

    assert_int_equal(spw_serve_imports_map(&handle, fake_driver_context(0), 0, &block, &address),
                     CUDA_SUCCESS);
    assert_int_equal(address, FAKE_DRIVER_BASE + OFFSET);
    assert_int_equal(end(&block), 0);
    assert_int_equal(fake_driver_mapped_count(), 2);
    assert_true(fake_driver.accessible[0] && fake_driver.accessible[1]);
    assert_int_equal(fake_driver_chunk_count(), 0); /* the mappings keep the memory */
    assert_true(spw_serve_imports_find(address + BYTES - 1, &base, &bytes));
    assert_int_equal(base, address);
    assert_int_equal(bytes, BYTES);
    assert_false(is_known(address - 1));
    assert_false(is_known(address + BYTES));
    assert_false(spw_serve_imports_close(address + 1, &result));
    assert_false(fake_driver.synchronized[0]);
    close_once(address);
    assert_true(fake_driver.synchronized[0]);
    assert_false(is_known(address));
    assert_false(spw_serve_imports_close(address, &result));
}

/* What is open is opened once more by the same handle in the same context, and by no other. */
static void test_handles(void **state)
{
    CUdeviceptr address = map(&handle, 0), again = 0;

    for (int i = 0; i < 5; i++) {
        struct spw_ipc_handle other = handle;

        other.pid += i == 0;
        other.start += i == 1;
        other.export_id += i == 2;
        other.key[sizeof(other.key) - 1] += i == 3;
        assert_false(spw_serve_imports_reopen(&other, fake_driver_context(i == 4), &again));
    }
    assert_true(spw_serve_imports_reopen(&handle, fake_driver_context(0), &again));
    assert_int_equal(again, address);
    close_once(address);
    assert_true(is_known(address));
    assert_false(fake_driver.synchronized[0]);
    close_once(address);
    assert_false(is_known(address));
}

/* Another thread has entered the block meanwhile: its mapping is opened once more. */
static void test_entered_meanwhile(void **state)
{
    CUdeviceptr first = map(&handle, 0), second = map(&handle, 0);

    assert_int_equal(first, second);
    assert_int_equal(reservations, 1);
    assert_int_equal(fake_driver_mapped_count(), 2);
    close_once(first);
    assert_true(is_known(first));
    close_once(first);
    assert_false(is_known(first));
}

/* ---- blocks that cannot be ---- */

/* The other process may tell anything. Nothing is reserved, and the descriptors are the caller's.
 */
static void test_outside_of_its_chunks(void **state)
{
    static const struct {
        uint64_t offset, bytes;
        size_t count;
    } cases[] = {{2 * G, 1, 2},      {2 * G + 1, 0, 2},  {0, 2 * G + 1, 2},      {1, 2 * G, 2},
                 {G, UINT64_MAX, 2}, {UINT64_MAX, 2, 2}, {UINT64_MAX - G, G, 2}, {0, 0, 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct spw_ipc_block block = fetched(cases[i].count, cases[i].offset, cases[i].bytes);
        CUdeviceptr address = 4711;

        assert_int_equal(
            spw_serve_imports_map(&handle, fake_driver_context(0), 0, &block, &address),
            CUDA_ERROR_OUT_OF_MEMORY);
        assert_int_equal(address, 4711);
        assert_int_equal(next_address, FAKE_DRIVER_BASE);
        assert_int_equal(end(&block), cases[i].count);
    }
}

static void test_no_memory(void **state)
{
    struct spw_ipc_block block = fetched(2, OFFSET, BYTES);
    CUdeviceptr address;

    calls_until_failure = 1;
    assert_int_equal(spw_serve_imports_map(&handle, fake_driver_context(0), 0, &block, &address),
                     CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(end(&block), 2);
    assert_int_equal(next_address, FAKE_DRIVER_BASE);
}

/* ---- refusals ---- */

/* `mapped`: chunks that were mapped before, and are unmapped. */
static void expect_refused(CUresult expected, size_t mapped)
{
    uint64_t before = fake_driver.calls[SPW_CALL_cuMemUnmap];
    CUdeviceptr address = 4711;

    assert_int_equal(map_as(&handle, 0, &address), expected);
    assert_int_equal(address, 4711);
    assert_false(is_known(FAKE_DRIVER_BASE + OFFSET));
    assert_int_equal(fake_driver_chunk_count(), 0);
    assert_int_equal(fake_driver_mapped_count(), 0);
    assert_int_equal(reservations, 0);
    assert_int_equal(fake_driver.calls[SPW_CALL_cuMemUnmap] - before, mapped);
    next_address = FAKE_DRIVER_BASE;
}

/* Whichever step is refused: what was mapped before is taken away. */
static void test_refused(void **state)
{
    static const CUresult results[][2] = {{CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY},
                                          {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_MAP_FAILED}};

    for (int i = 0; i < 2; i++) {
        import_result = results[i][0];
        fake_driver.driver.cuMemAddressReserve = refuse_reserve;
        expect_refused(results[i][1], 0);
        fake_driver.driver.cuMemAddressReserve = reserve;
        for (size_t after = 0; after < 2; after++) {
            imports_left = (int)after;
            expect_refused(results[i][1], after);
            imports_left = -1;
            fake_driver_fail(SPW_CALL_cuMemMap, after, 1, results[i][0]);
            expect_refused(results[i][1], after);
        }
        fake_driver_fail(SPW_CALL_cuMemSetAccess, 0, 1, results[i][0]);
        expect_refused(results[i][1], 2);
    }
    close_once(map(&handle, 0));
}

/* Memory that may be in use stays mapped, and can be closed later. */
static void test_close_is_refused(void **state)
{
    static const enum spw_own_call each[] = {SPW_CALL_cuCtxPushCurrent_v2,
                                             SPW_CALL_cuCtxSynchronize};
    CUdeviceptr address = map(&handle, 0);

    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        CUresult result = CUDA_SUCCESS;

        fake_driver_fail(each[i], 0, 1, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        assert_true(spw_serve_imports_close(address, &result));
        assert_int_equal(result, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        assert_true(is_known(address + BYTES - 1));
        assert_int_equal(fake_driver_mapped_count(), 2);
    }
    close_once(address);
}

/* ---- ends ---- */

/* A context takes its own blocks along, however often they are open, and no others. */
static void test_context_ends(void **state)
{
    const struct spw_ipc_handle other = {.pid = 77, .export_id = 1};
    CUdeviceptr first = map(&handle, 0), second = map(&handle, 1), third = map(&other, 0), again;

    assert_int_not_equal(first, second);
    assert_true(spw_serve_imports_reopen(&handle, fake_driver_context(0), &again));
    spw_serve_imports_end_context(fake_driver_context(2));
    assert_int_equal(reservations, 3);
    spw_serve_imports_end_context(fake_driver_context(0));
    assert_false(is_known(first) || is_known(third));
    assert_true(is_known(second));
    assert_int_equal(fake_driver_mapped_count(), 2);
    close_once(second);
}

/* A child forgets all, and leaves the mappings to its parent. */
static void test_reset(void **state)
{
    CUdeviceptr first = map(&handle, 0), second = map(&handle, 1), again;
    long live = live_allocations;
    CUresult result;

    spw_serve_imports_reset();
    assert_int_equal(live_allocations, live - 4);
    assert_false(is_known(first) || is_known(second));
    assert_false(spw_serve_imports_reopen(&handle, fake_driver_context(0), &again));
    assert_false(spw_serve_imports_close(first, &result));
    assert_int_equal(fake_driver_mapped_count(), 4);
    assert_int_equal(fake_driver.calls[SPW_CALL_cuMemUnmap], 0);
    memset(fake_driver.mapped, 0, sizeof(fake_driver.mapped));
    reservations = 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_map),     TEST(test_handles),          TEST(test_entered_meanwhile),
        TEST(test_refused), TEST(test_close_is_refused), TEST(test_outside_of_its_chunks),
        TEST(test_reset),   TEST(test_context_ends),     TEST(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
