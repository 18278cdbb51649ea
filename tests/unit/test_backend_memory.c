/* The backend in a process without memory: what needs a record is refused and leaves nothing, and
 * what was there goes on. */
#include "backend/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backend/copy.h"
#include "backend/fence.h"
#include "fake_driver.h"
#include "malloc_faults.h"

enum { MIB = 1 << 20 };

static const struct spw_stream all = {.id = SPW_STREAM_ALL};

static struct spw_backend_fences fences;
static struct spw_stream stream;

static void open(void)
{
    spw_backend_fences_init(&fences, fake_driver_reset(), 0);
    spw_backend_fences_note_context(&fences, fake_driver_context(0), /* peer */ false);
    stream = (struct spw_stream){
        .id = 100, .handle = (void *)(uintptr_t)0x100, .context = fake_driver_context(0)};
}

static void close(void)
{
    assert_int_equal(calls_until_failure, 0);
    assert_null(fake_driver_current());
    spw_backend_fences_fini(&fences, /* destroy_events */ true);
    assert_int_equal(fake_driver_event_count(), 0);
    assert_int_equal(fake_driver.violations, 0);
}

static enum spw_err record(const struct spw_stream *of, struct spw_backend_fence **ret_fence)
{
    *ret_fence = NULL;
    return spw_backend_fence_record(&fences, of, ret_fence);
}

/* The driver is not even asked. */
static void test_backend(void **state)
{
    struct spw_backend *backend = NULL;

    fake_driver_reset();
    calls_until_failure = 1;
    assert_int_equal(spw_backend_create(&fake_driver.driver, 0, &backend), SPW_E_METADATA_NOMEM);
    assert_null(backend);
    assert_int_equal(fake_driver.calls[SPW_CALL_cuDeviceGet], 0);
    assert_int_equal(spw_backend_create(&fake_driver.driver, 0, &backend), SPW_OK);
    spw_backend_destroy(backend, /* release */ true);
}

/* Of a context that nobody could note, work may be pending for ever: no fence covers the device. */
static void test_context(void **state)
{
    struct spw_backend_fence *fence;

    open();
    calls_until_failure = 1;
    spw_backend_fences_note_context(&fences, fake_driver_context(1), /* peer */ false);
    assert_int_equal(record(&all, &fence), SPW_E_AGAIN);
    assert_null(fence);
    assert_int_equal(fake_driver_event_count(), 0);
    assert_int_equal(record(&stream, &fence), SPW_OK); /* that of a stream needs no contexts */
    spw_backend_fence_drop(&fences, fence);
    close();
}

static void test_fence(void **state)
{
    struct spw_backend_fence *fence = NULL;

    open();
    calls_until_failure = 1;
    assert_int_equal(record(&stream, &fence), SPW_E_METADATA_NOMEM);
    calls_until_failure = 1;
    assert_int_equal(spw_backend_fence_watch(&fences, &stream, &fence), SPW_E_METADATA_NOMEM);
    assert_null(fence);
    assert_int_equal(fake_driver.calls[SPW_CALL_cuEventCreate], 0);
    assert_int_equal(record(&stream, &fence), SPW_OK);
    spw_backend_fence_drop(&fences, fence);
    close();
}

/* The record of the fence serves the next one. */
static void test_event(void **state)
{
    struct spw_backend_fence *fence;

    open();
    calls_until_failure = 2;
    assert_int_equal(record(&stream, &fence), SPW_E_NO_MEMORY);
    assert_null(fence);
    assert_int_equal(fake_driver.calls[SPW_CALL_cuEventCreate], 0);
    assert_null(fake_driver_current());
    calls_until_failure = 2; /* one call is enough now */
    assert_int_equal(record(&stream, &fence), SPW_OK);
    assert_int_equal(calls_until_failure, 1);
    calls_until_failure = 0;
    spw_backend_fence_drop(&fences, fence);
    close();
}

/* A copy whose end could not be told is not made. */
static void test_copy(void **state)
{
    const struct spw_vm_copy copies[] = {
        {.to = FAKE_DRIVER_BASE + MIB, .from = FAKE_DRIVER_BASE, .bytes = MIB}};
    struct spw_backend_copier copier = {.fences = &fences};
    struct spw_backend_fence *held, *fence = (void *)&fences;

    open();
    assert_int_equal(record(&stream, &held), SPW_OK);
    calls_until_failure = 1;
    assert_int_equal(spw_backend_copier_copy(&copier, copies, 1, /* after_all */ false, &fence),
                     SPW_E_METADATA_NOMEM);
    assert_null(fence);
    assert_int_equal(fake_driver.copy_count, 0);
    assert_int_equal(spw_backend_copier_copy(&copier, copies, 1, false, &fence), SPW_OK);
    assert_int_equal(fake_driver.copy_count, 1);
    spw_backend_fence_drop(&fences, held);
    spw_backend_fence_drop(&fences, fence);
    spw_backend_copier_fini(&copier, /* destroy */ true);
    close();
}

static void test_hash(void **state)
{
    struct spw_backend_copier copier = {.fences = &fences};
    uint64_t hash = 4711;

    open();
    calls_until_failure = 1;
    assert_int_equal(spw_backend_copier_hash(&copier, FAKE_DRIVER_BASE, MIB, &hash),
                     SPW_E_METADATA_NOMEM);
    assert_int_equal(hash, 4711);
    assert_null(copier.handle);
    assert_int_equal(spw_backend_copier_hash(&copier, FAKE_DRIVER_BASE, MIB, &hash), SPW_OK);
    assert_int_not_equal(hash, 4711);
    spw_backend_copier_fini(&copier, /* destroy */ true);
    close();
}

/* What a copy may still write to is not given to others: it is lost. */
static void test_reads_that_are_under_way(void **state)
{
    static const struct {
        enum spw_own_call fails;
        size_t times;
        long kept;
    } each[] = {{SPW_CALL_cuMemcpyDtoHAsync_v2, 1, 0},
                {SPW_CALL_cuStreamSynchronize, 1, 1},
                {SPW_CALL_cuStreamSynchronize, 2, 1}};
    struct spw_backend_copier copier = {.fences = &fences};
    uint64_t hash;
    bool busy;

    open();
    assert_int_equal(spw_backend_copier_hash(&copier, FAKE_DRIVER_BASE, MIB, &hash), SPW_OK);
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        long live = live_allocations;

        fake_driver_fail(each[i].fails, 0, each[i].times, CUDA_ERROR_OUT_OF_MEMORY);
        assert_int_not_equal(spw_backend_copier_hash(&copier, FAKE_DRIVER_BASE, MIB, &hash),
                             SPW_OK);
        assert_int_equal(live_allocations - live, each[i].kept);
        live = live_allocations;
        fake_driver_fail(each[i].fails, 0, each[i].times, CUDA_ERROR_OUT_OF_MEMORY);
        assert_int_not_equal(
            spw_backend_copier_probe(&copier, FAKE_DRIVER_BASE + MIB, FAKE_DRIVER_BASE, MIB, &busy),
            SPW_OK);
        assert_int_equal(busy, each[i].times == 2);
        assert_int_equal(live_allocations - live, busy);
    }
    fake_driver_fail(SPW_CALL_COUNT, 0, 0, CUDA_SUCCESS);
    spw_backend_copier_fini(&copier, /* destroy */ true);
    close();
}

static void test_probe_without_memory(void **state)
{
    struct spw_backend_copier copier = {.fences = &fences};
    bool busy = true;

    open();
    calls_until_failure = 1;
    assert_int_equal(
        spw_backend_copier_probe(&copier, FAKE_DRIVER_BASE + MIB, FAKE_DRIVER_BASE, MIB, &busy),
        SPW_E_METADATA_NOMEM);
    assert_false(busy);
    close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backend),
        cmocka_unit_test(test_context),
        cmocka_unit_test(test_fence),
        cmocka_unit_test(test_event),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_reads_that_are_under_way),
        cmocka_unit_test(test_probe_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
