/* Limits: charges of memory that the program created itself, byte by byte; trimming; opening the
 * host. */
#include "pool/pool.h"
#include "pool_fixture.h"

enum { DEVICE = 8, HOST = 4 };

static struct pool_fixture f;

static uint64_t granules(const _Atomic uint64_t *counter)
{
    uint64_t bytes = spw_counter_get(counter);

    assert_int_equal(bytes % GRANULE, 0);
    return bytes / GRANULE;
}

static enum spw_err charge_host(uint64_t bytes)
{
    enum spw_err err = spw_pool_charge_host(f.pool, bytes, /* site */ 0, /* wished */ false);

    pool_check(&f);
    return err;
}

/* The counters of the host, in granules. */
static void expect_host(uint64_t now, uint64_t peak, uint64_t ever)
{
    assert_int_equal(granules(&f.counters.host_bytes), now);
    assert_int_equal(granules(&f.counters.host_used_bytes), now);
    assert_int_equal(granules(&f.counters.vmm_host_bytes), now);
    assert_int_equal(granules(&f.counters.live_bytes), now);
    assert_int_equal(granules(&f.counters.async_live_bytes), 0);
    assert_int_equal(granules(&f.counters.host_peak_bytes), peak);
    assert_int_equal(granules(&f.counters.spilled_bytes), ever);
    assert_int_equal(granules(&f.counters.placed_bytes), ever);
    assert_int_equal(granules(&f.counters.committed_bytes), 0);
}

/* The host's limit is exact, counts everything, and a refusal charges nothing. */
static void test_host(void **state)
{
    pool_open_small(&f, 64, DEVICE, 0);
    assert_int_equal(charge_host(1), SPW_E_LIMIT); /* without a tier */
    spw_pool_set_host_limit(f.pool, (uint64_t)HOST * GRANULE);
    assert_int_equal(charge_host((uint64_t)HOST * GRANULE + 1), SPW_E_LIMIT);
    assert_int_equal(charge_host(UINT64_MAX), SPW_E_LIMIT);
    assert_int_equal(charge_host(UINT64_MAX - GRANULE + 1), SPW_E_LIMIT);
    expect_host(0, 0, 0);
    assert_int_equal(charge_host(3 * GRANULE), SPW_OK);
    expect_host(3, 3, 3);
    assert_int_equal(charge_host(UINT64_MAX - GRANULE + 1), SPW_E_LIMIT);
    assert_int_equal(charge_host(GRANULE + 1), SPW_E_LIMIT);
    expect_host(3, 3, 3);
    assert_int_equal(charge_host(GRANULE), SPW_OK);
    expect_host(4, 4, 4);
    assert_int_equal(charge_host(1), SPW_E_LIMIT);
    spw_pool_discharge_host(f.pool, 3 * GRANULE, /* site */ 0);
    expect_host(1, 4, 4);
    assert_int_equal(charge_host(GRANULE), SPW_OK);
    expect_host(2, 4, 5);
    spw_pool_discharge_host(f.pool, 2 * GRANULE, /* site */ 0);
    expect_host(0, 4, 5);
    assert_int_equal(spw_pool_charge_host(f.pool, GRANULE, /* site */ 0, /* wished */ true),
                     SPW_OK);
    expect_host(1, 4, 5); /* it did not spill */
    spw_pool_discharge_host(f.pool, GRANULE, /* site */ 0);
    pool_close(&f);
}

/* Blocks on the host and charges share one limit. */
static void test_host_and_blocks(void **state)
{
    uint64_t block = 0, host_bytes;

    pool_open_small(&f, 64, DEVICE, 0);
    spw_pool_set_host_limit(f.pool, (uint64_t)HOST * GRANULE);
    (void)pool_alloc(&f, (uint64_t)DEVICE * GRANULE, &stream_a);
    assert_int_equal(charge_host(3 * GRANULE), SPW_OK);
    assert_true(pool_try_anywhere(&f, 2 * GRANULE, &stream_a, &block, &host_bytes) != SPW_OK);
    assert_int_equal(pool_try_anywhere(&f, GRANULE, &stream_a, &block, &host_bytes), SPW_OK);
    assert_int_equal(host_bytes, GRANULE);
    assert_int_equal(charge_host(1), SPW_E_LIMIT);
    spw_pool_discharge_host(f.pool, 3 * GRANULE, /* site */ 0);
    assert_int_equal(charge_host(3 * GRANULE + 1), SPW_E_LIMIT);
    assert_int_equal(charge_host(3 * GRANULE), SPW_OK);
    spw_pool_discharge_host(f.pool, 3 * GRANULE, /* site */ 0);
    pool_close(&f);
}

/* The device's limit, likewise. */
static void test_device(void **state)
{
    pool_open_small(&f, 64, DEVICE, 0);
    assert_int_equal(spw_pool_charge(f.pool, (uint64_t)DEVICE * GRANULE + 1, 0, false),
                     SPW_E_LIMIT);
    assert_int_equal(spw_pool_charge(f.pool, (uint64_t)DEVICE * GRANULE, 0, false), SPW_OK);
    pool_check(&f);
    assert_int_equal(spw_pool_charge(f.pool, 1, 0, false), SPW_E_LIMIT);
    assert_int_equal(spw_pool_charge(f.pool, UINT64_MAX, 0, false), SPW_E_LIMIT);
    assert_int_equal(granules(&f.counters.vmm_bytes), DEVICE);
    assert_int_equal(granules(&f.counters.committed_bytes), DEVICE);
    assert_int_equal(granules(&f.counters.live_bytes), DEVICE);
    assert_int_equal(granules(&f.counters.async_live_bytes), 0);
    spw_pool_discharge(f.pool, (uint64_t)DEVICE * GRANULE, 0);
    assert_int_equal(granules(&f.counters.vmm_bytes), 0);
    assert_int_equal(granules(&f.counters.committed_bytes), 0);
    assert_int_equal(granules(&f.counters.live_bytes), 0);
    assert_int_equal(granules(&f.counters.async_live_bytes), 0);
    assert_int_equal(granules(&f.counters.committed_peak_bytes), DEVICE);
    pool_close(&f);
}

/* A charge takes as many spare granules as it needs, a part of one counts whole, and a charge that
 * can never be had takes none. */
static void test_device_and_spare_chunks(void **state)
{
    pool_open_small(&f, 64, DEVICE, 0);
    pool_free(&f, pool_alloc(&f, 6 * GRANULE, &stream_a), &stream_a);
    f.vm.immediate = true;
    assert_int_equal(spw_pool_charge(f.pool, UINT64_MAX - GRANULE, 0, false), SPW_E_LIMIT);
    assert_int_equal(spw_pool_charge(f.pool, (uint64_t)(DEVICE + 1) * GRANULE, 0, false),
                     SPW_E_LIMIT);
    assert_int_equal(f.vm.chunks, 6);
    assert_int_equal(granules(&f.counters.committed_bytes), 6);
    assert_int_equal(spw_pool_charge(f.pool, 2 * GRANULE, 0, false), SPW_OK);
    assert_int_equal(f.vm.chunks, 6);
    assert_int_equal(spw_pool_charge(f.pool, GRANULE / 2, 0, false), SPW_OK);
    assert_int_equal(f.vm.chunks, 5);
    spw_pool_discharge(f.pool, 2 * GRANULE + GRANULE / 2, 0);
    pool_close(&f);
}

/* A charge of all that the limit allows takes every spare granule, and one beyond the limit that is
 * allowed nevertheless takes what there is. */
static void test_largest_charge(void **state)
{
    const uint64_t all = (uint64_t)DEVICE * GRANULE;

    pool_open_small(&f, 64, DEVICE, 0);
    pool_free(&f, pool_alloc(&f, 6 * GRANULE, &stream_a), &stream_a);
    f.vm.immediate = true;
    assert_int_equal(spw_pool_charge(f.pool, all, 0, false), SPW_OK);
    assert_int_equal(f.vm.chunks, 0);
    spw_pool_discharge(f.pool, all, 0);
    assert_int_equal(spw_pool_charge(f.pool, all + 1, 0, true), SPW_OK);
    assert_int_equal(spw_counter_get(&f.counters.live_bytes), all + 1);
    spw_pool_discharge(f.pool, all + 1, 0);
    pool_close(&f);
}

/* ---- trimming ---- */

static size_t queries(void)
{
    size_t count = f.vm.calls[FAKE_QUERY];

    f.vm.calls[FAKE_QUERY] = 0;
    return count;
}

/* Trimming looks three times for work that is complete, but not when it has enough. */
static void test_looks(void **state)
{
    bool moves;

    pool_open_small(&f, 64, DEVICE, 0);
    assert_int_equal(spw_pool_open_host(f.pool, (uint64_t)HOST * GRANULE, &moves), SPW_OK);
    pool_free(&f, pool_alloc(&f, 4 * GRANULE, &stream_a), &stream_a);
    assert_int_equal(spw_pool_trim(f.pool, 0), 0);
    assert_int_equal(queries(), 3);
    assert_int_equal(spw_pool_trim_host(f.pool), 0);
    assert_int_equal(queries(), 3);
    assert_int_equal(spw_pool_trim(f.pool, 4 * GRANULE), 0);
    assert_int_equal(queries(), 0);
    pool_close(&f);
}

/* Where trimming finds nothing, the other way waits for what was freed, for as long as is allowed.
 */
static void test_waits_for_frees(void **state)
{
    pool_open_small(&f, 64, DEVICE, 0);
    pool_free(&f, pool_alloc(&f, 4 * GRANULE, &stream_a), &stream_a);
    spw_pool_fence_frees(f.pool);
    assert_int_equal(f.vm.calls[FAKE_FENCE], 1);
    f.vm.impatient = true;
    assert_int_equal(spw_pool_trim(f.pool, 0), 0);
    assert_int_equal(spw_pool_trim_pending(f.pool), 0);
    assert_int_equal(f.vm.calls[FAKE_FENCE], 1);
    f.vm.impatient = false;
    assert_int_equal(spw_pool_trim_pending(f.pool), 4 * GRANULE);
    assert_int_equal(spw_pool_trim_pending(f.pool), 0);
    pool_close(&f);
}

/* Spare chunks go first. What is mapped stays so as far as it is not needed. */
static void test_spare_chunks_first(void **state)
{
    uint64_t address;

    pool_open_small(&f, 64, DEVICE, 0);
    address = pool_alloc(&f, 4 * GRANULE, &stream_a);
    pool_leave_spare(&f, 2);
    pool_free(&f, address, &stream_a);
    spw_pool_synchronized(f.pool, NULL, spw_pool_clock(f.pool));
    (void)pool_memory_calls(&f);
    assert_int_equal(spw_pool_trim(f.pool, 4 * GRANULE), 2 * GRANULE);
    assert_int_equal(f.vm.calls[FAKE_UNMAP], 0);
    pool_leave_spare(&f, 5); /* one more than is mapped */
    (void)pool_memory_calls(&f);
    assert_int_equal(spw_pool_trim(f.pool, 2 * GRANULE), 3 * GRANULE);
    (void)pool_memory_calls(&f);
    assert_int_equal(pool_alloc(&f, 2 * GRANULE, &stream_a), address);
    assert_int_equal(pool_memory_calls(&f), 0);
    pool_close(&f);
}

/* A pool that will be destroyed keeps its chunks. */
static void test_shut(void **state)
{
    pool_open_small(&f, 64, DEVICE, 0);
    f.vm.immediate = true;
    pool_free(&f, pool_alloc(&f, 4 * GRANULE, &stream_a), &stream_a);
    spw_pool_shut(f.pool);
    assert_int_equal(spw_pool_trim(f.pool, 0), 0);
    assert_int_equal(f.vm.chunks, 4);
    pool_refuse(&f, GRANULE, &stream_a, SPW_E_UNSUPPORTED);
    pool_close(&f);
}

/* ---- opening the host ---- */

/* When the host cannot be used, no limit of it is left. */
static void test_no_host(void **state)
{
    bool moves = true;

    pool_open_small(&f, 64, DEVICE, 0);
    f.vm.no_host = f.vm.no_pinned = true;
    assert_int_equal(spw_pool_open_host(f.pool, (uint64_t)HOST * GRANULE, &moves),
                     SPW_E_UNSUPPORTED);
    assert_false(moves);
    assert_int_equal(spw_counter_get(&f.counters.host_limit_bytes), 0);
    assert_int_equal(charge_host(1), SPW_E_LIMIT);
    pool_close(&f);
}

/* While it cannot be tested there is no host tier of any kind; later there is. */
static void test_host_not_yet(void **state)
{
    bool moves = false;

    pool_open_small(&f, 64, DEVICE, 0);
    f.vm.capturing = true;
    assert_int_equal(spw_pool_open_host(f.pool, (uint64_t)HOST * GRANULE, &moves), SPW_E_AGAIN);
    assert_int_equal(spw_counter_get(&f.counters.host_limit_bytes), 0);
    assert_false(spw_pool_uses_pinned(f.pool));
    assert_int_equal(f.vm.seeks, 1);
    f.vm.capturing = false;
    assert_int_equal(spw_pool_open_host(f.pool, (uint64_t)HOST * GRANULE, &moves), SPW_OK);
    assert_true(moves);
    assert_int_equal(granules(&f.counters.host_limit_bytes), HOST);
    assert_false(spw_pool_uses_pinned(f.pool));
    assert_int_equal(f.vm.seeks, 2);
    spw_pool_set_host_limit(f.pool, GRANULE);
    assert_int_equal(granules(&f.counters.host_limit_bytes), 1);
    pool_close(&f);
}

/* A host that cannot be used is no other way to get memory: waits are as long as they take. */
static void test_no_other_way(void **state)
{
    bool moves;

    pool_open_as(&f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                               .arena_bytes = 64ull * GRANULE,
                                               .limit_bytes = 4ull * GRANULE,
                                               .host_untried = true});
    f.vm.no_host = f.vm.no_pinned = true;
    assert_int_equal(spw_pool_open_host(f.pool, GRANULE, &moves), SPW_E_UNSUPPORTED);
    pool_free(&f, pool_alloc(&f, 4 * GRANULE, NULL), NULL);
    (void)pool_alloc(&f, 4 * GRANULE, NULL);
    assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], 1);
    assert_int_equal(f.vm.calls[FAKE_WAIT_SOON], 0);
    pool_close(&f);
}

/* A pool that goes takes its live blocks out of the figures of their sites and of its device. */
static void test_live_blocks_at_the_end(void **state)
{
    struct spw_charge sites[3] = {0};
    struct spw_charges charges = {.sites = sites, .most = 2};
    const struct spw_request request = {.bytes = 3 * GRANULE, .stream = &stream_a, .site = 1};
    struct spw_result result;

    pool_open_as(&f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                               .arena_bytes = 64ull * GRANULE,
                                               .limit_bytes = (uint64_t)DEVICE * GRANULE,
                                               .charges = &charges});
    assert_int_equal(spw_pool_alloc(f.pool, &request, &result), SPW_OK);
    assert_int_equal(spw_counter_get(&sites[1].live), 3 * GRANULE);
    assert_int_equal(spw_counter_get(&f.counters.async_live_bytes), 3 * GRANULE);
    spw_pool_shut(f.pool);
    assert_int_equal(spw_counter_get(&f.counters.async_live_bytes), 0);
    pool_close(&f);
    assert_int_equal(spw_counter_get(&sites[1].live), 0);
    assert_int_equal(spw_counter_get(&sites[1].frees), 1);
    assert_int_equal(spw_counter_get(&f.counters.async_live_bytes), 0);
}

/* Likewise of a pool that was not shut before. */
static void test_ordered_block_at_the_end(void **state)
{
    pool_open_small(&f, 64, DEVICE, 0);
    (void)pool_alloc(&f, 3 * GRANULE, &stream_a);
    pool_close(&f);
    assert_int_equal(spw_counter_get(&f.counters.async_live_bytes), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_host_and_blocks),
        cmocka_unit_test(test_device),
        cmocka_unit_test(test_device_and_spare_chunks),
        cmocka_unit_test(test_largest_charge),
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_waits_for_frees),
        cmocka_unit_test(test_spare_chunks_first),
        cmocka_unit_test(test_shut),
        cmocka_unit_test(test_no_host),
        cmocka_unit_test(test_host_not_yet),
        cmocka_unit_test(test_no_other_way),
        cmocka_unit_test(test_live_blocks_at_the_end),
        cmocka_unit_test(test_ordered_block_at_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
