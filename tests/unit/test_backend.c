/* The backend's memory over a driver in plain memory: what it finds out about ranges of mappings,
 * and what it does when the driver refuses. */
#include "backend/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "fake_driver.h"

enum { G = FAKE_DRIVER_GRANULE, MOST_FAULTS = 64 };

static struct spw_vm *vm;
static struct spw_backend *backend;

static void open(void)
{
    assert_int_equal(spw_backend_create(&fake_driver.driver, 0, &backend), SPW_OK);
    vm = spw_backend_vm(backend);
}

static void close(void)
{
    spw_backend_destroy(backend, /* release */ true);
    assert_int_equal(fake_driver.violations, 0);
    assert_int_equal(fake_driver.reserved, 0);
    assert_int_equal(fake_driver_chunk_count(), 0);
    assert_int_equal(fake_driver_mapped_count(), 0);
    assert_null(fake_driver_current());
}

static uint64_t calls(enum spw_own_call call)
{
    return fake_driver.calls[call];
}

/* Makes `count` chunks of a granule and maps them side by side. */
static void map(uint64_t *chunks, size_t count, uint64_t *ret_address)
{
    assert_int_equal(vm->ops->reserve(vm, count * G, ret_address), SPW_OK);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(vm->ops->create(vm, SPW_TIER_DEVICE, G, &chunks[i]), SPW_OK);
        assert_int_equal(vm->ops->map(vm, *ret_address + i * G, G, chunks[i]), SPW_OK);
    }
}

static void release(const uint64_t *chunks, size_t count, uint64_t address)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(vm->ops->release(vm, chunks[i]), SPW_OK);
    }
    vm->ops->unreserve(vm, address, count * G);
}

/* ---- ranges ---- */

/* One call is made for several mappings only if the driver was seen to do all of it. */
static void check_ranges(enum fake_driver_range unmap, enum fake_driver_range access)
{
    uint64_t chunks[4], address, done = 77, before;

    fake_driver_reset();
    fake_driver.unmap_range = unmap;
    fake_driver.access_range = access;
    open();
    assert_int_equal(fake_driver_mapped_count(), 0);
    assert_int_equal(fake_driver_chunk_count(), 0);
    map(chunks, 4, &address);

    before = calls(SPW_CALL_cuMemSetAccess);
    assert_int_equal(vm->ops->set_access(vm, address, 4 * G, G), SPW_OK);
    assert_int_equal(calls(SPW_CALL_cuMemSetAccess) - before, access == FAKE_RANGE_ALL ? 1 : 4);
    for (size_t i = 0; i < 4; i++) {
        assert_true(fake_driver.accessible[i]);
    }
    before = calls(SPW_CALL_cuMemUnmap);
    assert_int_equal(vm->ops->unmap(vm, address, 4 * G, G, &done), SPW_OK);
    assert_int_equal(calls(SPW_CALL_cuMemUnmap) - before, unmap == FAKE_RANGE_ALL ? 1 : 4);
    assert_int_equal(fake_driver_mapped_count(), 0);
    assert_int_equal(done, 77); /* it is told on failure only */
    release(chunks, 4, address);
    close();
}

/* The driver may also answer that an unmap succeeded, and have unmapped the first only. Its
 * answer about access is trusted. */
static void test_ranges(void **state)
{
    check_ranges(FAKE_RANGE_ALL, FAKE_RANGE_ALL);
    check_ranges(FAKE_RANGE_REFUSED, FAKE_RANGE_ALL);
    check_ranges(FAKE_RANGE_ALL, FAKE_RANGE_REFUSED);
    check_ranges(FAKE_RANGE_REFUSED, FAKE_RANGE_REFUSED);
    check_ranges(FAKE_RANGE_FIRST_ONLY, FAKE_RANGE_ALL);
    check_ranges(FAKE_RANGE_FIRST_ONLY, FAKE_RANGE_REFUSED);
}

/* Chunks of several granules are unmapped by their size. */
static void test_larger_chunks(void **state)
{
    uint64_t chunks[2], address, done = 0;

    fake_driver_reset();
    fake_driver.unmap_range = fake_driver.access_range = FAKE_RANGE_REFUSED;
    open();
    assert_int_equal(vm->ops->reserve(vm, 8 * G, &address), SPW_OK);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(vm->ops->create(vm, SPW_TIER_DEVICE, 4 * G, &chunks[i]), SPW_OK);
        assert_int_equal(vm->ops->map(vm, address + i * 4 * G, 4 * G, chunks[i]), SPW_OK);
    }
    assert_int_equal(vm->ops->set_access(vm, address, 8 * G, 4 * G), SPW_OK);
    assert_true(fake_driver.accessible[0] && fake_driver.accessible[4]);
    assert_int_equal(vm->ops->unmap(vm, address, 8 * G, 4 * G, &done), SPW_OK);
    for (size_t i = 0; i < 2; i++) {
        vm->ops->release(vm, chunks[i]);
    }
    vm->ops->unreserve(vm, address, 8 * G);
    close();
}

/* An unmap that fails half-way tells how much it did. */
static void test_unmap_fails(void **state)
{
    for (size_t after = 0; after < 4; after++) {
        uint64_t chunks[4], address, done = 77;

        fake_driver_reset();
        fake_driver.unmap_range = FAKE_RANGE_REFUSED;
        open();
        map(chunks, 4, &address);
        fake_driver_fail(SPW_CALL_cuMemUnmap, after, 1, CUDA_ERROR_LAUNCH_FAILED);
        assert_int_equal(vm->ops->unmap(vm, address, 4 * G, G, &done),
                         spw_err_from_driver(CUDA_ERROR_LAUNCH_FAILED));
        assert_int_equal(done, after * G);
        assert_int_equal(fake_driver_mapped_count(), 4 - after);
        assert_int_equal(vm->ops->unmap(vm, address + done, 4 * G - done, G, &done), SPW_OK);
        release(chunks, 4, address);
        close();
    }
}

static void test_unmap_of_a_range_fails(void **state)
{
    uint64_t chunks[4], address, done = 77;

    fake_driver_reset();
    open();
    map(chunks, 4, &address);
    fake_driver_fail(SPW_CALL_cuMemUnmap, 0, 1, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_not_equal(vm->ops->unmap(vm, address, 4 * G, G, &done), SPW_OK);
    assert_int_equal(done, 0);
    assert_int_equal(vm->ops->unmap(vm, address, 4 * G, G, &done), SPW_OK);
    release(chunks, 4, address);
    close();
}

/* ---- faults while the backend is made ---- */

/* Nothing is left, whichever call fails, and ranges are not trusted where the trial failed. */
static void sweep(enum spw_own_call call)
{
    size_t after = 0;

    for (bool failed = true; failed; after++) {
        uint64_t chunks[2], address, done = 0;
        enum spw_err err;

        assert_true(after < MOST_FAULTS);
        fake_driver_reset();
        fake_driver.access_range = FAKE_RANGE_REFUSED;
        fake_driver.unmap_range = FAKE_RANGE_FIRST_ONLY;
        fake_driver_fail(call, after, 1, CUDA_ERROR_OUT_OF_MEMORY);
        err = spw_backend_create(&fake_driver.driver, 0, &backend);
        failed = fake_driver.fail_count == 0;
        fake_driver.fail_count = 0;
        assert_int_equal(fake_driver.reserved, 0);
        if (call != SPW_CALL_cuMemUnmap && call != SPW_CALL_cuMemRelease) {
            assert_int_equal(fake_driver_mapped_count(), 0);
            assert_int_equal(fake_driver_chunk_count(), 0);
            assert_int_equal(fake_driver.violations, 0);
        }
        if (err != SPW_OK) {
            continue;
        }
        fake_driver.violations = 0;
        memset(fake_driver.mapped, 0, sizeof(fake_driver.mapped));
        memset(fake_driver.chunks, 0, sizeof(fake_driver.chunks));
        vm = spw_backend_vm(backend);
        map(chunks, 2, &address);
        assert_int_equal(vm->ops->set_access(vm, address, 2 * G, G), SPW_OK);
        assert_true(fake_driver.accessible[0] && fake_driver.accessible[1]);
        assert_int_equal(vm->ops->unmap(vm, address, 2 * G, G, &done), SPW_OK);
        release(chunks, 2, address);
        close();
    }
    assert_true(after > 1); /* the call is made at all */
}

static void test_faults_at_the_start(void **state)
{
    static const enum spw_own_call each[] = {
        SPW_CALL_cuDeviceGet,
        SPW_CALL_cuDeviceGetAttribute,
        SPW_CALL_cuMemGetAllocationGranularity,
        SPW_CALL_cuMemAddressReserve,
        SPW_CALL_cuMemCreate,
        SPW_CALL_cuMemMap,
        SPW_CALL_cuMemSetAccess,
        SPW_CALL_cuMemUnmap,
        SPW_CALL_cuMemRelease,
    };

    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        sweep(each[i]);
    }
}

/* ---- chunks and access ---- */

/* Chunks can be registered with network cards where that works, and are made without it where it
 * does not, but not in place of one that has no room. */
static void test_network_cards(void **state)
{
    uint64_t chunk, other;

    fake_driver_reset();
    fake_driver.rdma = true;
    open();
    assert_int_equal(vm->ops->create(vm, SPW_TIER_DEVICE, G, &chunk), SPW_OK);
    assert_true(fake_driver.flagged[chunk - 1]);
    fake_driver_fail(SPW_CALL_cuMemCreate, 0, 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(vm->ops->create(vm, SPW_TIER_DEVICE, G, &other), SPW_E_NO_MEMORY);
    assert_int_equal(vm->ops->create(vm, SPW_TIER_DEVICE, G, &other), SPW_OK);
    assert_true(fake_driver.flagged[other - 1]);
    assert_int_equal(vm->ops->release(vm, other), SPW_OK);

    fake_driver.rdma_result = CUDA_ERROR_NOT_SUPPORTED;
    for (int i = 0; i < 2; i++) {
        uint64_t before = calls(SPW_CALL_cuMemCreate);

        assert_int_equal(vm->ops->create(vm, SPW_TIER_DEVICE, G, &other), SPW_OK);
        assert_false(fake_driver.flagged[other - 1]);
        assert_int_equal(calls(SPW_CALL_cuMemCreate) - before, i == 0 ? 2 : 1);
        assert_int_equal(vm->ops->release(vm, other), SPW_OK);
    }
    assert_int_equal(vm->ops->release(vm, chunk), SPW_OK);
    close();
}

/* NOT_READY is asked again, not for ever; other errors are not. */
static void test_access_while_busy(void **state)
{
    uint64_t chunk, address, done = 0, before;

    fake_driver_reset();
    open();
    map(&chunk, 1, &address);
    fake_driver_fail(SPW_CALL_cuMemSetAccess, 0, 3, CUDA_ERROR_NOT_READY);
    before = calls(SPW_CALL_cuMemSetAccess);
    assert_int_equal(vm->ops->set_access(vm, address, G, G), SPW_OK);
    assert_int_equal(calls(SPW_CALL_cuMemSetAccess) - before, 4);
    fake_driver_fail(SPW_CALL_cuMemSetAccess, 0, SIZE_MAX, CUDA_ERROR_NOT_READY);
    before = calls(SPW_CALL_cuMemSetAccess);
    assert_int_equal(vm->ops->set_access(vm, address, G, G),
                     spw_err_from_driver(CUDA_ERROR_NOT_READY));
    assert_in_range(calls(SPW_CALL_cuMemSetAccess) - before, 10, 100);
    fake_driver_fail(SPW_CALL_cuMemSetAccess, 0, 1, CUDA_ERROR_LAUNCH_FAILED);
    before = calls(SPW_CALL_cuMemSetAccess);
    assert_int_not_equal(vm->ops->set_access(vm, address, G, G), SPW_OK);
    assert_int_equal(calls(SPW_CALL_cuMemSetAccess) - before, 1);
    fake_driver.fail_count = 0;
    assert_int_equal(vm->ops->unmap(vm, address, G, G, &done), SPW_OK);
    release(&chunk, 1, address);
    close();
}

/* New memory is given all rights, memory in use only the one that changed last. */
static void test_rights(void **state)
{
    uint64_t chunk, address, done = 0;

    fake_driver_reset();
    open();
    map(&chunk, 1, &address);
    assert_false(
        spw_backend_grant(backend, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE)); /* the device's own */
    assert_false(spw_backend_grant(backend, 1, CU_MEM_ACCESS_FLAGS_PROT_NONE));
    assert_true(spw_backend_grant(backend, 1, CU_MEM_ACCESS_FLAGS_PROT_READ));
    assert_true(spw_backend_grant(backend, 2, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    assert_false(spw_backend_grant(backend, 2, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    assert_int_equal(vm->ops->set_access(vm, address, G, G), SPW_OK);
    assert_int_equal(fake_driver.access_count, 3);
    assert_int_equal(fake_driver.access[1].flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
    assert_int_equal(fake_driver.access[2].flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    assert_true(spw_backend_grant(backend, 1, CU_MEM_ACCESS_FLAGS_PROT_NONE));
    assert_int_equal(vm->ops->share(vm, address, G, G), SPW_OK);
    assert_int_equal(fake_driver.access_count, 1);
    assert_int_equal(fake_driver.access[0].location.id, 1);
    assert_int_equal(fake_driver.access[0].location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    assert_int_equal(fake_driver.access[0].flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    assert_int_equal(vm->ops->unmap(vm, address, G, G, &done), SPW_OK);
    release(&chunk, 1, address);
    close();
}

/* The list of rights has an end. */
static void test_many_rights(void **state)
{
    int device = 1;

    fake_driver_reset();
    open();
    while (spw_backend_grant(backend, device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE)) {
        device++;
        assert_true(device < 1000);
    }
    assert_int_equal(device, 64);
    close();
}

/* ---- fences, through the pool's interface ---- */

static void test_fences(void **state)
{
    const struct spw_stream all = {.id = SPW_STREAM_ALL};
    const struct spw_stream stream = {1, (void *)0x100, fake_driver_context(0), false};
    void *fence = NULL, *other = NULL;

    fake_driver_reset();
    open();
    spw_backend_set_patience(backend, 1000);
    spw_backend_note_context(backend, fake_driver_context(0), false);
    assert_false(vm->ops->defers(vm));
    assert_int_equal(vm->ops->fence(vm, &all, &fence), SPW_OK);
    assert_int_equal(vm->ops->query(vm, fence), SPW_E_AGAIN);
    assert_int_equal(vm->ops->wait_soon(vm, fence), SPW_E_AGAIN);
    assert_int_equal(vm->ops->wait_stream(vm, &stream, fence), SPW_OK);
    assert_int_equal(fake_driver.waited_count, 1);
    fake_driver_complete(NULL);
    assert_int_equal(vm->ops->query(vm, fence), SPW_OK);
    assert_int_equal(vm->ops->wait_soon(vm, fence), SPW_OK);
    assert_int_equal(vm->ops->wait_host(vm, fence), SPW_OK);
    fake_driver.driver.captures_open = 1;
    assert_int_equal(vm->ops->fence(vm, &all, &other), SPW_E_AGAIN);
    assert_null(other);
    fake_driver.driver.captures_open = 0;
    vm->ops->drop(vm, fence);
    spw_backend_forget_context(backend, fake_driver_context(0));
    fake_driver_destroy(0);
    close();
    assert_int_equal(fake_driver_event_count(), 0);
}

/* A wait that is to be short waits for the device where fences are deferred. */
static void test_deferred_fences(void **state)
{
    const struct spw_stream all = {.id = SPW_STREAM_ALL};
    void *fence = NULL;

    fake_driver_reset();
    fake_driver.driver.cuCtxRecordEvent = NULL;
    open();
    spw_backend_note_context(backend, fake_driver_context(0), false);
    assert_true(vm->ops->defers(vm));
    assert_int_equal(vm->ops->fence(vm, &all, &fence), SPW_OK);
    assert_int_equal(vm->ops->query(vm, fence), SPW_E_AGAIN);
    assert_int_equal(vm->ops->wait_soon(vm, fence), SPW_OK);
    assert_true(fake_driver.synchronized[0]);
    vm->ops->drop(vm, fence);
    spw_backend_forget_contexts(backend);
    close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_larger_chunks),
        cmocka_unit_test(test_unmap_fails),
        cmocka_unit_test(test_unmap_of_a_range_fails),
        cmocka_unit_test(test_faults_at_the_start),
        cmocka_unit_test(test_network_cards),
        cmocka_unit_test(test_access_while_busy),
        cmocka_unit_test(test_rights),
        cmocka_unit_test(test_many_rights),
        cmocka_unit_test(test_fences),
        cmocka_unit_test(test_deferred_fences),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
