/* Prefetching through the interface of the folder: which calls look after it, and what it means for
 * allocations. */
#include "migrate/migrate.h"

#include "tier_fixture.h"
#include "migrate/move/barrier.h"

enum { CHECKS = 8 };

static void record(int block)
{
    spw_migrate_barrier_acquire();
    spw_migrate_use(tier.tier, &tier.blocks[block], 1, /* kernel */ true);
    spw_migrate_barrier_release();
}

/* Uses all blocks in turn, and the last two again and again. */
static void cycle(void)
{
    for (int i = 0; i < BLOCKS - 2; i++) {
        record(i);
        record(BLOCKS - 2);
        record(BLOCKS - 1);
    }
}

static struct spw_migrate_config overlapping(bool guarded)
{
    struct spw_migrate_config config = tier_usual();

    config.overlap = true;
    config.guarded = guarded;
    return config;
}

/* Half of the blocks are on the host, and all are used in turn, so that the uses are predicted. */
static void open_predicted(struct spw_migrate_config config)
{
    tier_open(config);
    for (int i = 0; i < BLOCKS; i++) {
        tier.site = 100 + (uint32_t)i;
        tier_fill(i, i + 1);
    }
    assert_true(spw_migrate_evict(tier.tier));
    tier_expect_evicted(BLOCKS / 2);
    for (int i = 0; i < 3; i++) {
        cycle();
    }
}

static void submit(void)
{
    spw_migrate_expect(tier.tier, NULL, 0, NULL);
}

static void submit_often(int count)
{
    for (int i = 0; i < count; i++) {
        submit();
    }
}

static uint64_t prefetches(void)
{
    return counter(&tier.pool.counters.prefetches);
}

static uint64_t moves(void)
{
    return counter(&tier.pool.counters.moves);
}

/* ---- submissions ---- */

/* Every eighth submission looks after prefetching, and is asked for its stream. */
static void test_every_eighth_submission(void **state)
{
    open_predicted(overlapping(false));
    for (int i = 0; i < CHECKS; i++) {
        assert_false(spw_migrate_wants_stream(tier.tier));
        submit();
    }
    assert_true(spw_migrate_wants_stream(tier.tier));
    assert_int_equal(prefetches(), 0);
    submit();
    assert_int_equal(prefetches(), 1);
    assert_false(spw_migrate_wants_stream(tier.tier));
    tier_close();
}

/* A use of a block that is on its way is waited for at once. */
static void test_use_of_what_comes(void **state)
{
    open_predicted(overlapping(false));
    submit_often(CHECKS + 1);
    assert_int_equal(prefetches(), 1);
    assert_int_equal(moves(), 1); /* that to the host */
    spw_migrate_expect(tier.tier, &tier.blocks[BLOCKS - 1], 1, NULL);
    assert_int_equal(moves(), 1);
    assert_true(tier_is_on_host(0));
    spw_migrate_expect(tier.tier, &tier.blocks[0], 1, NULL);
    assert_int_equal(moves(), 2);
    assert_false(tier_is_on_host(0));
    tier_close();
}

/* Nothing is begun while memory may not move, while another thread moves it, and in a pause. */
static void test_submissions_that_do_nothing(void **state)
{
    uint64_t bytes;

    open_predicted(overlapping(false));
    tier.may_move = false;
    submit_often(3 * CHECKS);
    assert_int_equal(prefetches(), 0);
    tier.may_move = true;
    spw_migrate_hold_moves(tier.tier);
    submit_often(3 * CHECKS);
    spw_migrate_release_moves(tier.tier);
    assert_int_equal(prefetches(), 0);
    assert_int_equal(spw_migrate_evict_all(tier.tier, NULL, false, WAIT_NS, &bytes), SPW_OK);
    submit_often(3 * CHECKS);
    assert_int_equal(prefetches(), 0);
    spw_migrate_return_all(tier.tier, WAIT_NS, &bytes);
    tier_close();
    open_predicted(tier_usual());
    submit_often(3 * CHECKS);
    assert_false(spw_migrate_wants_stream(tier.tier));
    assert_int_equal(prefetches(), 0);
    tier_close();
}

/* The throttle marks the work on the stream that is submitted to. */
static void test_marks_on_the_stream(void **state)
{
    size_t fences[2];

    for (int known = 0; known < 2; known++) {
        open_predicted(overlapping(false));
        submit_often(CHECKS);
        tier.pool.vm.calls[FAKE_FENCE] = 0;
        spw_migrate_expect(tier.tier, NULL, 0, known ? &stream_a : NULL);
        assert_int_equal(prefetches(), 1);
        fences[known] = tier.pool.vm.calls[FAKE_FENCE];
        cycle();
        submit_often(CHECKS + 1); /* looks at the mark again */
        tier_close();
    }
    assert_int_equal(fences[1], fences[0] + 1);
}

/* ---- an idle device ---- */

/* Prefetching decides what comes back. */
static void test_idle(void **state)
{
    open_predicted(overlapping(false));
    spw_migrate_idle(tier.tier);
    assert_int_equal(prefetches(), 1);
    assert_int_equal(moves(), 1);
    spw_migrate_idle(tier.tier);
    assert_int_equal(moves(), 2);
    assert_false(tier_is_on_host(0));
    assert_true(tier_is_on_host(BLOCKS / 2 - 1));
    tier_close();
}

/* Without, all that fits comes back at once. */
static void test_idle_without_prefetching(void **state)
{
    open_predicted(tier_usual());
    spw_migrate_idle(tier.tier);
    assert_int_equal(prefetches(), 0);
    assert_int_equal(tier_on_host(), DEVICE / 32);
    tier_close();
    tier_open(overlapping(false));
    tier_fill_and_age(0);
    assert_true(spw_migrate_evict(tier.tier));
    spw_migrate_idle(tier.tier);
    assert_int_equal(tier_on_host(), DEVICE / 32);
    tier_close();
}

/* ---- allocations ---- */

/* While uses are predicted, only what is missing is evicted: what is used last. */
static void test_evicted_with_predictions(void **state)
{
    open_predicted(tier_usual());
    (void)tier_take(32); /* all the room that there was */
    (void)tier_take(4);
    assert_int_equal(tier_on_host(), 32 + 4 + 1);
    for (int i = BLOCKS / 2; i < BLOCKS / 2 + 6; i++) {
        assert_false(tier_is_on_host(i));
    }
    tier_close();
}

/* Room that a migration in flight will give is used before more is evicted. */
static void test_migration_in_flight_gives_room(void **state)
{
    open_predicted(overlapping(false));
    (void)tier_take(32);
    for (int i = 0; i < 3; i++) {
        cycle();
    }
    submit_often(CHECKS + 1);
    assert_int_equal(prefetches(), 1);
    assert_int_equal(moves(), 1);
    (void)tier_take(BLOCK);
    assert_int_equal(moves(), 2);
    tier_close();
}

/* Holding moves finishes what is in flight; giving up ends it without a change. */
static uint64_t on_host(void)
{
    (void)spw_pool_trim(tier.pool.pool, 0);
    (void)spw_pool_trim_host(tier.pool.pool);
    return counter(&tier.pool.counters.host_bytes);
}

/* A migration whose blocks are freed meanwhile pins their memory until it is over. */
static void test_settle(void **state)
{
    uint64_t begun;

    open_predicted(overlapping(false));
    spw_migrate_settle(tier.tier); /* nothing is in flight */
    submit_often(CHECKS + 1);
    assert_int_equal(prefetches(), 1);
    for (int i = 0; i < BLOCKS; i++) {
        tier_give(tier.blocks[i]);
    }
    assert_true(on_host() > 0);
    begun = moves();
    spw_migrate_settle(tier.tier);
    assert_true(moves() > begun);
    assert_int_equal(on_host(), 0);
    tier_close();
}

/* While the device is busy, a migration goes on. */
static void test_settle_beside_work(void **state)
{
    open_predicted(overlapping(false));
    submit_often(CHECKS + 1);
    tier.pool.vm.immediate = false;
    spw_migrate_settle(tier.tier);
    assert_int_equal(moves(), 1);
    tier.pool.vm.immediate = true;
    fake_vm_complete(&tier.pool.vm);
    spw_migrate_settle(tier.tier);
    assert_int_equal(moves(), 2);
    tier_close();
}

/* Copies that take a while are waited for, and not for ever. */
static void test_settle_behind_copies(void **state)
{
    open_predicted(overlapping(false));
    submit_often(CHECKS + 1);
    assert_int_equal(prefetches(), 1);
    tier.pool.vm.fail_call = FAKE_QUERY; /* it answers that they are under way */
    tier.pool.vm.fail_after = 0;
    tier.pool.vm.fail_more = SIZE_MAX;
    spw_migrate_settle(tier.tier);
    assert_int_equal(moves(), 1);
    tier.pool.vm.fail_after = 0;
    tier.pool.vm.fail_more = 0;
    spw_migrate_settle(tier.tier);
    assert_int_equal(moves(), 2);
    tier.pool.vm.fail_call = -1;
    tier_close();
}

static void test_hold_and_give_up(void **state)
{
    open_predicted(overlapping(false));
    submit_often(CHECKS + 1);
    spw_migrate_hold_moves(tier.tier);
    assert_int_equal(moves(), 2);
    assert_false(tier_is_on_host(0));
    spw_migrate_release_moves(tier.tier);
    spw_migrate_hold_moves(NULL);
    spw_migrate_release_moves(NULL);
    tier_close();
    open_predicted(overlapping(false));
    submit_often(CHECKS + 1);
    spw_migrate_give_up(tier.tier);
    assert_int_equal(moves(), 1);
    assert_int_equal(counter(&tier.pool.counters.abandoned_moves), 1);
    tier_expect_evicted(BLOCKS / 2);
    tier_close();
}

/* ---- swapping ---- */

/* A migration in flight is given up, so that all memory can go to the file. */
static void test_swap_gives_up(void **state)
{
    struct spw_swap_file file;
    struct spw_swap_result result;

    open_predicted(overlapping(false));
    submit_often(CHECKS + 1);
    assert_int_equal(prefetches(), 1);
    assert_int_equal(spw_migrate_swap_file_open("/tmp", &file), 0);
    assert_int_equal(spw_migrate_swap_prepare(tier.tier, WAIT_NS), SPW_OK);
    assert_int_equal(counter(&tier.pool.counters.abandoned_moves), 1);
    result = spw_migrate_swap_out_all(tier.tier, &file);
    assert_int_equal(result.error, 0);
    assert_int_equal(result.bytes, DEVICE * (uint64_t)GRANULE);
    assert_int_equal(spw_migrate_swap_in_all(tier.tier, &file).left, 0);
    tier_expect_evicted(BLOCKS / 2);
    spw_migrate_swap_file_close(&file);
    tier_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_eighth_submission),
        cmocka_unit_test(test_use_of_what_comes),
        cmocka_unit_test(test_submissions_that_do_nothing),
        cmocka_unit_test(test_marks_on_the_stream),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_idle_without_prefetching),
        cmocka_unit_test(test_evicted_with_predictions),
        cmocka_unit_test(test_migration_in_flight_gives_room),
        cmocka_unit_test(test_settle),
        cmocka_unit_test(test_settle_beside_work),
        cmocka_unit_test(test_settle_behind_copies),
        cmocka_unit_test(test_hold_and_give_up),
        cmocka_unit_test(test_swap_gives_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
