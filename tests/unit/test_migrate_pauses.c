/* Evictions for others, for a pause, and the return of blocks while the device is idle. */
#include "migrate/migrate.h"

#include "tier_fixture.h"
#include "system/clock.h"
#include "system/thread_slots.h"

/* ---- for others, and at once ---- */

/* 64 MiB are evicted when the driver needs memory, warm or not. */
static void test_evict_some(void **state)
{
    tier_open(tier_usual());
    assert_false(spw_migrate_evict(tier.tier));
    tier_fill_and_age(0);
    assert_true(spw_migrate_evict(tier.tier));
    tier_expect_evicted(32 / BLOCK);
    assert_true(spw_migrate_is_recording(tier.tier));
    assert_true(spw_migrate_evict(tier.tier));
    tier_expect_evicted(BLOCKS);
    assert_false(spw_migrate_evict(tier.tier));
    tier_close();
}

/* An eviction that was abandoned, since the device stayed busy, is no reason to refuse the next. */
static void test_evict_after_an_abandoned_one(void **state)
{
    tier_open(tier_usual());
    tier_fill_and_age(0);
    tier.pool.vm.immediate = false;
    assert_false(spw_migrate_evict(tier.tier));
    assert_int_equal(counter(&tier.pool.counters.abandoned_moves), 1);
    tier.pool.vm.immediate = true;
    fake_vm_complete(&tier.pool.vm);
    assert_true(spw_migrate_evict(tier.tier));
    tier_expect_evicted(32 / BLOCK);
    tier_close();
}

/* ---- pauses ---- */

static void test_pause(void **state)
{
    uint64_t bytes = 4711;

    tier_open(tier_usual());
    tier_fill_and_age(0);
    assert_int_equal(spw_migrate_evict_all(tier.tier, NULL, false, WAIT_NS, &bytes), SPW_OK);
    assert_int_equal(bytes, DEVICE * (uint64_t)GRANULE);
    tier_expect_evicted(BLOCKS);
    spw_migrate_idle(tier.tier); /* nothing comes back during a pause */
    tier_expect_evicted(BLOCKS);
    bytes = 4711;
    spw_migrate_return_all(tier.tier, WAIT_NS, &bytes);
    assert_int_equal(bytes, DEVICE * (uint64_t)GRANULE);
    tier_expect_evicted(0);
    bytes = 4711;
    spw_migrate_return_all(tier.tier, WAIT_NS, &bytes); /* it has ended */
    assert_int_equal(bytes, 0);
    assert_int_equal(counter(&tier.pool.counters.abandoned_moves), 0);
    assert_int_equal(tier.moved, counter(&tier.pool.counters.moves));
    assert_int_equal(tier.closed_ns, counter(&tier.pool.counters.closed_ns));
    assert_in_range(tier.closed_ns, 1, counter(&tier.pool.counters.stall_ns) - 1);
    tier_close();
}

/* Refusals from before count no more, and those of the pause do not count afterwards. */
static void test_pause_after_refusals(void **state)
{
    uint64_t bytes, address;

    tier_open(tier_usual());
    tier_fill_and_age(COLD);
    tier.pool.vm.immediate = false;
    (void)tier_try(BLOCK, &address); /* the device does not become idle: the attempt is given up */
    assert_int_equal(counter(&tier.pool.counters.abandoned_moves), 1);
    fake_vm_complete(&tier.pool.vm);
    tier.pool.vm.immediate = true;
    assert_int_equal(spw_migrate_evict_all(tier.tier, NULL, false, WAIT_NS, &bytes), SPW_OK);
    spw_migrate_return_all(tier.tier, WAIT_NS, &bytes);
    assert_true(bytes > 0);
    assert_true(spw_migrate_evict(tier.tier));
    tier_close();
}

/* Only the blocks of one account. */
static void test_pause_of_an_account(void **state)
{
    const struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .account = 2};
    const struct spw_block_filter second = {.account = 2};
    uint64_t bytes, address;

    tier_open(tier_usual());
    tier_fill(0, BLOCKS - 1);
    assert_int_equal(
        tier_try_request(
            &(struct spw_request){.bytes = GRANULE, .stream = &stream_a, .placement = &placement},
            &address),
        SPW_OK);
    assert_int_equal(spw_migrate_evict_all(tier.tier, &second, false, WAIT_NS, &bytes), SPW_OK);
    assert_int_equal(bytes, GRANULE);
    assert_int_equal(fake_vm_on_host(&tier.pool.vm, address, GRANULE), 1);
    spw_migrate_return_all(tier.tier, WAIT_NS, &bytes);
    assert_int_equal(bytes, GRANULE);
    assert_int_equal(fake_vm_on_host(&tier.pool.vm, address, GRANULE), 0);
    tier_close();
}

/* Acts as a program that goes on during a pause: it makes a new block after each move. */
static void make_another(int ordinal, const struct spw_migrate_switched *switched)
{
    static const struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .account = 2};
    struct spw_result result;

    if (tier.moved++ < DEVICE / 2) { /* so that a pause without an end fails, and does not hang */
        assert_int_equal(spw_pool_alloc(tier.pool.pool,
                                        &(struct spw_request){.bytes = GRANULE,
                                                              .stream = &stream_a,
                                                              .placement = &placement},
                                        &result),
                         SPW_OK);
    }
}

/* A pause moves no more bytes than there were when it began. */
static void test_pause_beside_new_blocks(void **state)
{
    const struct spw_block_filter second = {.account = 2};
    struct spw_migrate_config config = tier_usual();
    uint64_t bytes;

    config.moved = make_another;
    tier_open(config);
    tier_fill(0, 2);
    make_another(0, NULL);
    assert_int_equal(spw_migrate_evict_all(tier.tier, &second, false, WAIT_NS, &bytes), SPW_OK);
    assert_int_equal(bytes, (2 * BLOCK + 1) * (uint64_t)GRANULE);
    assert_int_equal(tier_on_host(), 2 * BLOCK + 1);
    tier_close();
}

/* One account of two comes back by itself, and the pause goes on for the other. */
static void test_end_of_a_part(void **state)
{
    const struct spw_pool_placement placements[] = {{.limit_bytes = UINT64_MAX, .account = 1},
                                                    {.limit_bytes = UINT64_MAX, .account = 2}};
    const struct spw_block_filter parts[] = {{.account = 1}, {.account = 2}};
    uint64_t bytes, addresses[2];

    tier_open(tier_usual());
    tier_fill(0, BLOCKS - 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tier_try_request(&(struct spw_request){.bytes = GRANULE,
                                                                .stream = &stream_a,
                                                                .placement = &placements[i]},
                                          &addresses[i]),
                         SPW_OK);
        spw_migrate_return_some(tier.tier, &parts[i], WAIT_NS, &bytes); /* nothing is paused */
        assert_int_equal(bytes, 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(spw_migrate_evict_all(tier.tier, &parts[i], false, WAIT_NS, &bytes),
                         SPW_OK);
        assert_int_equal(bytes, GRANULE);
    }
    spw_migrate_return_some(tier.tier, &parts[0], WAIT_NS, &bytes);
    assert_int_equal(bytes, GRANULE);
    spw_migrate_idle(tier.tier); /* would bring back what fits, without the pause */
    assert_int_equal(fake_vm_on_host(&tier.pool.vm, addresses[0], GRANULE), 0);
    assert_int_equal(fake_vm_on_host(&tier.pool.vm, addresses[1], GRANULE), 1);
    spw_migrate_return_all(tier.tier, WAIT_NS, &bytes);
    assert_int_equal(fake_vm_on_host(&tier.pool.vm, addresses[1], GRANULE), 0);
    tier_close();
}

/* Blocks that graphs name move only while no graph can be launched. */
static void test_pause_with_graphs(void **state)
{
    const struct spw_block_attributes named = {.fix = SPW_FIXED_BY_GRAPH};
    uint64_t bytes;

    for (int held = 0; held < 2; held++) {
        tier_open(tier_usual());
        tier_fill_and_age(0);
        assert_int_equal(
            spw_pool_set_attributes(tier.pool.pool, tier.blocks[5], BLOCK * GRANULE, &named), 1);
        assert_int_equal(spw_migrate_evict_all(tier.tier, NULL, held, WAIT_NS, &bytes), SPW_OK);
        assert_int_equal(tier_is_on_host(5), held);
        assert_true(tier_is_on_host(4));
        spw_migrate_return_all(tier.tier, WAIT_NS, &bytes);
        tier_expect_evicted(0);
        assert_true(spw_migrate_evict(tier.tier));
        assert_false(tier_is_on_host(5)); /* the pause has ended */
        tier_close();
    }
}

/* Blocks that graphs name stay again after memory was in a file. */
static void test_graphs_after_a_swap(void **state)
{
    const struct spw_block_attributes named = {.fix = SPW_FIXED_BY_GRAPH};
    struct spw_swap_file file;
    uint64_t bytes;

    tier_open(tier_usual());
    tier_fill_and_age(0);
    assert_int_equal(
        spw_pool_set_attributes(tier.pool.pool, tier.blocks[5], BLOCK * GRANULE, &named), 1);
    assert_int_equal(spw_migrate_swap_file_open("/tmp", &file), 0);
    assert_int_equal(spw_migrate_swap_out_all(tier.tier, &file).bytes, DEVICE * (uint64_t)GRANULE);
    assert_int_equal(spw_migrate_swap_in_all(tier.tier, &file).left, 0);
    spw_migrate_swap_file_close(&file);
    spw_migrate_return_all(tier.tier, WAIT_NS, &bytes);
    assert_int_equal(bytes, 0);
    tier_expect_evicted(0);
    while (spw_migrate_evict(tier.tier)) {
    }
    for (int i = 0; i < BLOCKS; i++) {
        assert_int_equal(tier_is_on_host(i), i != 5);
    }
    tier_close();
}

/* The host has room for exactly one granule more. */
static void test_pause_beside_a_small_host(void **state)
{
    struct spw_migrate_config config = tier_usual();
    uint64_t bytes;

    config.limit.bytes = (DEVICE + 1) * (uint64_t)GRANULE;
    tier_open(config);
    tier_fill_and_age(0);
    assert_int_equal(spw_migrate_evict_all(tier.tier, NULL, false, WAIT_NS, &bytes), SPW_OK);
    assert_int_equal(bytes, DEVICE * (uint64_t)GRANULE);
    spw_migrate_return_all(tier.tier, WAIT_NS, &bytes);
    tier_close();
}

/* A pause waits for long; afterwards migrations wait as before, here for a thread that submits. */
static void test_patience_after_a_pause(void **state)
{
    const uint64_t long_ns = UINT64_C(2000000000);
    struct spw_thread_slot *other = &spw_thread_slots.slots[SPW_THREAD_SLOTS - 2];
    uint64_t bytes, begin;

    tier_open(tier_usual());
    tier_fill_and_age(0);
    assert_int_equal(spw_migrate_evict_all(tier.tier, NULL, false, long_ns, &bytes), SPW_OK);
    spw_migrate_return_all(tier.tier, long_ns, &bytes);
    assert_int_equal(atomic_load(&other->submitting), 0);
    atomic_store(&other->submitting, 1);
    begin = spw_clock_ns();
    assert_false(spw_migrate_evict(tier.tier));
    assert_in_range(spw_clock_ns() - begin, WAIT_NS, long_ns - 1);
    atomic_store(&other->submitting, 0);
    assert_int_equal(counter(&tier.pool.counters.abandoned_moves), 1);
    tier_close();
}

/* A pause that fails leaves no refusals: one abandoned migration later there is one, as at first.
 */
static void test_refusals_after_a_pause(void **state)
{
    uint64_t bytes;

    tier_open(tier_usual());
    tier_fill_and_age(COLD);
    tier.pool.vm.immediate = false;
    assert_int_equal(spw_migrate_evict_all(tier.tier, NULL, false, WAIT_NS, &bytes), SPW_E_AGAIN);
    spw_migrate_return_all(tier.tier, WAIT_NS, &bytes);
    assert_int_equal(counter(&tier.pool.counters.abandoned_moves), 1);
    (void)tier_take(BLOCK);
    assert_int_equal(counter(&tier.pool.counters.abandoned_moves), 2);
    fake_vm_complete(&tier.pool.vm);
    tier.pool.vm.immediate = true;
    (void)tier_take(BLOCK); /* its eviction is refused */
    assert_int_equal(counter(&tier.pool.counters.moves), 0);
    (void)tier_take(BLOCK);
    assert_int_equal(counter(&tier.pool.counters.moves), 1);
    assert_int_equal(counter(&tier.pool.counters.abandoned_moves), 2);
    tier_close();
}

/* A host that is too small, and a device that does not become idle. */
static void test_pause_that_fails(void **state)
{
    struct spw_migrate_config config = tier_usual();
    uint64_t bytes;

    config.limit.bytes = 10 * GRANULE;
    tier_open(config);
    tier_fill_and_age(0);
    assert_int_equal(spw_migrate_evict_all(tier.tier, NULL, false, WAIT_NS, &bytes),
                     SPW_E_NO_MEMORY);
    assert_int_equal(bytes, 10 * GRANULE);
    tier_expect_evicted(10 / BLOCK);
    tier_close();

    tier_open(tier_usual());
    tier_fill_and_age(0);
    tier.pool.vm.immediate = false;
    assert_int_equal(spw_migrate_evict_all(tier.tier, NULL, false, WAIT_NS, &bytes), SPW_E_AGAIN);
    assert_int_equal(bytes, 0);
    tier_expect_evicted(0);
    fake_vm_complete(&tier.pool.vm);
    tier.pool.vm.immediate = true;
    spw_migrate_return_all(tier.tier, WAIT_NS, &bytes);
    tier_close();
}

/* ---- an idle device ---- */

/* Blocks come back as far as they fit, and a part of the device is left free. */
static void test_idle(void **state)
{
    enum { FREED = 10 };

    tier_open(tier_usual());
    tier_fill_and_age(0);
    assert_true(spw_migrate_evict(tier.tier));
    (void)tier_take(32);
    assert_int_equal(tier_on_host(), 32);
    spw_migrate_idle(tier.tier); /* there is no room */
    assert_int_equal(tier_on_host(), 32);
    tier_give(tier.blocks[BLOCKS - 1]);
    spw_migrate_idle(tier.tier); /* exactly what is left free */
    assert_int_equal(tier_on_host(), 32);
    for (int i = 1; i < FREED; i++) {
        tier_give(tier.blocks[BLOCKS - 1 - i]);
    }
    spw_migrate_idle(tier.tier);
    assert_int_equal(tier_on_host(), 32 - (FREED * BLOCK - DEVICE / 32));
    spw_migrate_idle(tier.tier);
    assert_int_equal(tier_on_host(), 32 - (FREED * BLOCK - DEVICE / 32));
    tier_close();
}

/* Nothing is asked of the driver while nothing is on the host. */
static void test_idle_without_spilled_memory(void **state)
{
    size_t calls;

    tier_open(tier_usual());
    tier_fill_and_age(0);
    assert_true(spw_migrate_evict(tier.tier));
    for (int i = 0; i < BLOCKS; i++) {
        tier_give(tier.blocks[i]);
    }
    (void)spw_pool_trim_host(tier.pool.pool);
    assert_int_equal(tier_on_host(), 0);
    calls = fake_vm_calls(&tier.pool.vm);
    spw_migrate_idle(tier.tier);
    assert_int_equal(fake_vm_calls(&tier.pool.vm), calls);
    tier_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evict_some),
        cmocka_unit_test(test_evict_after_an_abandoned_one),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_pause_after_refusals),
        cmocka_unit_test(test_pause_of_an_account),
        cmocka_unit_test(test_pause_beside_new_blocks),
        cmocka_unit_test(test_end_of_a_part),
        cmocka_unit_test(test_pause_with_graphs),
        cmocka_unit_test(test_graphs_after_a_swap),
        cmocka_unit_test(test_pause_beside_a_small_host),
        cmocka_unit_test(test_patience_after_a_pause),
        cmocka_unit_test(test_refusals_after_a_pause),
        cmocka_unit_test(test_pause_that_fails),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_idle_without_spilled_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
