/* Blocks on the host: allocated there when the device is full; their chunks are evicted after the
 * free. */
#include "pool_fixture.h"

enum { DEVICE = 8, HOST = 16 };

static void open_tiers(struct pool_fixture *f)
{
    pool_open_small(f, 256, DEVICE, 0);
    spw_pool_set_host_limit(f->pool, (uint64_t)HOST * GRANULE);
}

static uint64_t alloc_anywhere(struct pool_fixture *f, uint64_t bytes,
                               const struct spw_stream *stream)
{
    uint64_t address = 0, host_bytes;

    assert_int_equal(pool_try_anywhere(f, bytes, stream, &address, &host_bytes), SPW_OK);
    assert_int_equal(host_bytes != 0, fake_vm_on_host(&f->vm, address, bytes) != 0);
    assert_true(fake_vm_usable(&f->vm, address, bytes));
    return address;
}

static void refuse_anywhere(struct pool_fixture *f, uint64_t bytes)
{
    uint64_t address = 4711, host_bytes;

    assert_true(pool_try_anywhere(f, bytes, &stream_a, &address, &host_bytes) < 0);
    assert_int_equal(address, 4711);
}

static void test_device_first(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    open_tiers(&f);
    address = alloc_anywhere(&f, DEVICE * GRANULE, &stream_a);
    assert_int_equal(fake_vm_on_host(&f.vm, address, DEVICE * GRANULE), 0);
    assert_int_equal(spw_counter_get(&f.counters.host_bytes), 0);
    pool_close(&f);
}

static void test_only_what_is_asked_for(void **state)
{
    struct pool_fixture f;

    open_tiers(&f);
    (void)pool_alloc(&f, DEVICE * GRANULE, &stream_a);
    pool_refuse(&f, GRANULE, &stream_a, SPW_E_LIMIT);
    spw_pool_set_host_limit(f.pool, 0);
    refuse_anywhere(&f, GRANULE);
    pool_close(&f);
}

static void test_share_of_a_block(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    open_tiers(&f);
    (void)pool_alloc(&f, 6 * GRANULE, &stream_a);
    address = alloc_anywhere(&f, 5 * GRANULE, &stream_a);
    assert_int_equal(fake_vm_on_host(&f.vm, address, 5 * GRANULE), 3);
    assert_int_equal(spw_counter_get(&f.counters.host_bytes), 3 * GRANULE);
    assert_int_equal(spw_counter_get(&f.counters.host_peak_bytes), 3 * GRANULE);
    assert_int_equal(spw_counter_get(&f.counters.committed_bytes), DEVICE * GRANULE);
    assert_int_equal(spw_counter_get(&f.counters.reserved_peak_bytes), 11 * GRANULE);
    pool_close(&f);
}

static void test_budget(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    open_tiers(&f);
    refuse_anywhere(&f, (DEVICE + HOST + 1) * GRANULE);
    address = alloc_anywhere(&f, (DEVICE + HOST) * GRANULE, &stream_a);
    assert_int_equal(f.vm.host_chunks, HOST);
    refuse_anywhere(&f, 512);
    pool_free(&f, address, &stream_a);
    pool_close(&f);
}

static void test_full_host_leaves_nothing_behind(void **state)
{
    struct pool_fixture f;

    open_tiers(&f);
    (void)pool_alloc(&f, 6 * GRANULE, &stream_a);
    f.vm.fail_call = FAKE_CREATE;
    f.vm.fail_after = 3;
    f.vm.fail_more = 1; /* the host is asked twice */
    refuse_anywhere(&f, 10 * GRANULE);
    (void)alloc_anywhere(&f, 10 * GRANULE, &stream_a);
    assert_int_equal(f.vm.host_chunks, 8);
    pool_close(&f);
}

/* A new block must not land on the host because an old one was there. */
static void test_free_host_memory_is_not_reused_as_device(void **state)
{
    struct pool_fixture f;
    uint64_t cold, hot, next;

    open_tiers(&f);
    cold = pool_alloc(&f, DEVICE * GRANULE, &stream_a);
    hot = alloc_anywhere(&f, 4 * GRANULE, &stream_a);
    pool_free(&f, hot, &stream_a);
    pool_free(&f, cold, &stream_a);
    next = pool_alloc(&f, 4 * GRANULE, &stream_a);
    assert_int_equal(fake_vm_on_host(&f.vm, next, 4 * GRANULE), 0);
    pool_close(&f);
}

/* Its chunks are evicted when its work is complete, not before. */
static void test_host_chunks_come_back(void **state)
{
    struct pool_fixture f;
    uint64_t spilled, other, host_bytes;

    open_tiers(&f);
    (void)pool_alloc(&f, DEVICE * GRANULE, &stream_a);
    spilled = alloc_anywhere(&f, HOST * GRANULE, &stream_a);
    pool_free(&f, spilled, &stream_a);
    f.vm.impatient = true;
    assert_int_equal(spw_counter_get(&f.counters.host_used_bytes), HOST * GRANULE);
    /* Its own stream may reuse it at once; another one must wait for it. */
    refuse_anywhere(&f, HOST * GRANULE + 512);
    assert_int_equal(pool_try_anywhere(&f, 4 * GRANULE, &stream_b, &other, &host_bytes),
                     SPW_E_LIMIT);
    fake_vm_complete(&f.vm);
    other = alloc_anywhere(&f, 4 * GRANULE, &stream_b);
    assert_int_equal(fake_vm_on_host(&f.vm, other, 4 * GRANULE), 4);
    assert_int_equal(spw_counter_get(&f.counters.host_used_bytes), 4 * GRANULE);
    assert_int_equal(f.vm.host_chunks, HOST);
    assert_int_equal(spw_pool_trim_host(f.pool), (HOST - 4) * GRANULE);
    pool_check(&f);
    pool_close(&f);
}

/* Blocks that begin and end inside granules. */
static void test_shared_granules(void **state)
{
    struct pool_fixture f;
    uint64_t blocks[6];

    open_tiers(&f);
    (void)pool_alloc(&f, DEVICE * GRANULE, &stream_a);
    for (int i = 0; i < 6; i++) {
        blocks[i] = alloc_anywhere(&f, GRANULE / 2 * 3, &stream_a);
    }
    assert_true(f.vm.host_chunks <= 12);
    for (int i = 0; i < 6; i += 2) {
        pool_free(&f, blocks[i], &stream_a);
    }
    fake_vm_complete(&f.vm);
    blocks[0] = alloc_anywhere(&f, 2 * GRANULE, &stream_a);
    pool_free(&f, blocks[0], &stream_a);
    for (int i = 1; i < 6; i += 2) {
        pool_free(&f, blocks[i], &stream_a);
    }
    f.vm.immediate = true;
    fake_vm_complete(&f.vm);
    (void)alloc_anywhere(&f, GRANULE, &stream_a);
    (void)spw_pool_trim_host(f.pool);
    assert_int_equal(f.vm.host_chunks, 1);
    pool_close(&f);
}

static void test_device_full_for_others(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    open_tiers(&f);
    f.vm.most_chunks = 3;
    address = alloc_anywhere(&f, 5 * GRANULE, &stream_a);
    assert_int_equal(fake_vm_on_host(&f.vm, address, 5 * GRANULE), 2);
    pool_close(&f);
}

static void test_usage(void **state)
{
    struct pool_fixture f;
    struct spw_pool_usage usage;

    open_tiers(&f);
    (void)pool_alloc(&f, 7 * GRANULE, &stream_a);
    (void)alloc_anywhere(&f, 3 * GRANULE + 512, &stream_a);
    spw_pool_usage(f.pool, &usage);
    assert_int_equal(usage.live, 10 * GRANULE + 512);
    assert_int_equal(usage.committed, DEVICE * GRANULE);
    assert_int_equal(usage.host, 3 * GRANULE);
    assert_int_equal(usage.spare, GRANULE - 512);
    pool_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_first),
        cmocka_unit_test(test_only_what_is_asked_for),
        cmocka_unit_test(test_share_of_a_block),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_full_host_leaves_nothing_behind),
        cmocka_unit_test(test_free_host_memory_is_not_reused_as_device),
        cmocka_unit_test(test_host_chunks_come_back),
        cmocka_unit_test(test_shared_granules),
        cmocka_unit_test(test_device_full_for_others),
        cmocka_unit_test(test_usage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
