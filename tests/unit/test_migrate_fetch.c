/* Blocks that come back to the device since a CUDA graph that names them is about to be launched.
 */
#include "migrate/migrate.h"

#include "tier_fixture.h"

enum { EXTRA = 8 }; /* blocks more than the device holds */

static uint64_t extra[EXTRA];

/* Fills the device, and then allocates so many more blocks, for which the first ones are evicted.
 * Returns how many of them are on the host. */
static int overfill(int more)
{
    int count = 0;

    tier_open(tier_usual());
    tier_fill_and_age(COLD);
    for (int i = 0; i < more; i++) {
        extra[i] = tier_take(BLOCK);
    }
    while (count < BLOCKS && tier_is_on_host(count)) {
        count++;
    }
    assert_true(count >= more);
    tier_expect_evicted(count);
    return count;
}

static void test_others_make_room(void **state)
{
    int evicted = overfill(EXTRA);
    uint64_t on_host = tier_on_host();

    assert_true(spw_migrate_fetch(tier.tier, tier.blocks, (size_t)evicted));
    for (int i = 0; i < evicted; i++) {
        assert_false(tier_is_on_host(i));
    }
    assert_true(tier_on_host() <= on_host);
    assert_true(tier_on_host() > 0);
    assert_int_equal(counter(&tier.pool.counters.abandoned_moves), 0);
    pool_check(&tier.pool);
    tier_close();
}

/* Blocks on the device stay there, even if they are the coldest. */
static void test_its_own_blocks_stay(void **state)
{
    int evicted = overfill(EXTRA);
    uint64_t named[BLOCKS];

    for (int i = 0; i < BLOCKS - EXTRA; i++) {
        named[i] = tier.blocks[BLOCKS - EXTRA - 1 - i];
    }
    assert_true(evicted < BLOCKS - EXTRA);
    assert_true(spw_migrate_fetch(tier.tier, named, BLOCKS - EXTRA));
    for (int i = 0; i < BLOCKS - EXTRA; i++) {
        assert_false(tier_is_on_host(i));
    }
    /* Afterwards they move as before. */
    assert_true(spw_migrate_evict(tier.tier));
    assert_true(tier_is_on_host(0));
    tier_close();
}

/* Free memory is used first. */
static void test_free_memory(void **state)
{
    int evicted = overfill(EXTRA);
    uint64_t spilled;

    for (int i = 0; i < EXTRA; i++) {
        tier_give(extra[i]);
    }
    spilled = counter(&tier.pool.counters.spilled_bytes);
    assert_true(spw_migrate_fetch(tier.tier, tier.blocks, EXTRA));
    for (int i = 0; i < EXTRA; i++) {
        assert_false(tier_is_on_host(i));
    }
    assert_int_equal(counter(&tier.pool.counters.spilled_bytes), spilled);
    assert_int_equal(evicted >= EXTRA, 1);
    tier_close();
}

/* More than the device holds: what finds no room stays on the host. */
static void test_too_many(void **state)
{
    uint64_t named[BLOCKS + EXTRA];

    (void)overfill(EXTRA);
    for (int i = 0; i < BLOCKS; i++) {
        named[i] = tier.blocks[i];
    }
    for (int i = 0; i < EXTRA; i++) {
        named[BLOCKS + i] = extra[i];
    }
    assert_false(spw_migrate_fetch(tier.tier, named, BLOCKS + EXTRA));
    assert_in_range(tier_on_host(), EXTRA * BLOCK, EXTRA * BLOCK + BLOCK);
    for (int i = 0; i < BLOCKS; i++) {
        (void)tier_is_on_host(i); /* checks the content */
    }
    tier_close();
}

/* Others that may not move give no room. */
static void test_others_that_stay(void **state)
{
    static const struct spw_block_attributes fixed = {.fix = SPW_FIXED_BY_PROGRAM};
    int evicted = overfill(EXTRA);
    uint64_t on_host;

    for (int i = evicted; i < BLOCKS; i++) {
        spw_pool_set_attributes(tier.pool.pool, tier.blocks[i], 1, &fixed);
    }
    for (int i = 0; i < EXTRA; i++) {
        spw_pool_set_attributes(tier.pool.pool, extra[i], 1, &fixed);
    }
    (void)spw_migrate_fetch(tier.tier, tier.blocks, (size_t)evicted); /* takes what is free */
    on_host = tier_on_host();
    assert_false(spw_migrate_fetch(tier.tier, tier.blocks, (size_t)evicted));
    assert_int_equal(tier_on_host(), on_host);
    tier_close();
}

/* It gives up when the device does not become idle. */
static void test_a_busy_device(void **state)
{
    int evicted = overfill(EXTRA);

    tier.pool.vm.immediate = false;
    assert_false(spw_migrate_fetch(tier.tier, tier.blocks, (size_t)evicted));
    assert_true(counter(&tier.pool.counters.abandoned_moves) > 0);
    tier_expect_evicted(evicted);
    tier.pool.vm.immediate = true;
    fake_vm_complete(&tier.pool.vm);
    tier_close();
}

static void test_when_nothing_is_done(void **state)
{
    int evicted;
    uint64_t bytes, moves;
    size_t calls;

    tier_open(tier_usual());
    tier_fill_and_age(0);
    assert_false(spw_migrate_fetch(tier.tier, tier.blocks, BLOCKS)); /* memory was never short */
    tier_close();

    evicted = overfill(EXTRA);
    moves = counter(&tier.pool.counters.moves);
    tier.may_move = false;
    assert_false(spw_migrate_fetch(tier.tier, tier.blocks, (size_t)evicted));
    tier.may_move = true;
    assert_int_equal(spw_migrate_evict_all(tier.tier, NULL, false, WAIT_NS, &bytes), SPW_OK);
    assert_false(spw_migrate_fetch(tier.tier, tier.blocks, (size_t)evicted));
    tier_expect_evicted(BLOCKS);
    spw_migrate_return_all(tier.tier, WAIT_NS, &bytes);
    assert_true(counter(&tier.pool.counters.moves) > moves);
    tier_close();

    /* Freed blocks, and addresses of nobody. */
    evicted = overfill(EXTRA);
    moves = counter(&tier.pool.counters.moves);
    tier_give(tier.blocks[0]);
    assert_true(spw_migrate_fetch(tier.tier, tier.blocks, 1));
    assert_true(spw_migrate_fetch(tier.tier, &(uint64_t){4711}, 1));
    assert_true(spw_migrate_fetch(tier.tier, tier.blocks + evicted, 1));
    assert_int_equal(counter(&tier.pool.counters.moves), moves);
    tier_close();

    /* While nothing is on the host nothing is looked at. */
    evicted = overfill(EXTRA);
    for (int i = 0; i < evicted; i++) {
        tier_give(tier.blocks[i]);
    }
    (void)spw_pool_trim_host(tier.pool.pool);
    assert_int_equal(tier_on_host(), 0);
    calls = fake_vm_calls(&tier.pool.vm);
    assert_true(spw_migrate_fetch(tier.tier, tier.blocks + evicted, 1));
    assert_int_equal(fake_vm_calls(&tier.pool.vm), calls);
    tier_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_others_make_room),     cmocka_unit_test(test_its_own_blocks_stay),
        cmocka_unit_test(test_free_memory),          cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_others_that_stay),     cmocka_unit_test(test_a_busy_device),
        cmocka_unit_test(test_when_nothing_is_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
