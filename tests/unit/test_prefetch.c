/* Prefetching and throttling, under a program that uses its blocks in turn, again and again. */
#include "migrate/move/prefetch.h"

#include <string.h>

#include "system/clock.h"
#include "migrate/move/barrier.h"
#include "migrate/tuning.h"
#include "pool/alloc/state.h"
#include "pool_fixture.h"

enum { MOST = 8192, PATIENCE_NS = 1000, CHECKS = 8 };

/* A program with blocks of one granule each. */
static struct {
    struct pool_fixture pool;
    struct spw_access_log log;
    struct spw_migrator migrator;
    struct spw_throttle throttle;
    struct spw_prefetch prefetch;
    uint64_t blocks[MOST];
    int count, next; /* of the blocks, and the one that is used next */
} f;

/* Moves the blocks [first, end) to the host. */
static void spill(int first, int end)
{
    for (int done = first; done < end;) {
        struct spw_move_place places[SPW_MOVE_GRANULES];
        struct spw_move_request wish = {.places = places};
        uint64_t bytes;

        for (; done < end && wish.count < SPW_MOVE_GRANULES; done++) {
            places[wish.count++] = (struct spw_move_place){
                .block = f.blocks[done], .granule = f.blocks[done], .to = SPW_TIER_HOST};
        }
        assert_int_equal(spw_migrate_migration_run(&f.migrator, &wish, SPW_MIGRATION_OTHER, NULL,
                                                   PATIENCE_NS, &bytes),
                         SPW_OK);
        assert_int_equal(bytes, wish.count * GRANULE);
    }
}

/* `count` blocks, of which [first, end) are on the host and the others fill the device but for
 * `room` granules. */
static void open_fixture(int count, int first, int end, int room, bool guarded)
{
    bool moves;

    memset(&f, 0, sizeof(f));
    spw_migrate_barrier_reset();
    spw_migrate_barrier_arm();
    pool_open_small(&f.pool, 2 * MOST, MOST, 0);
    assert_int_equal(spw_pool_open_host(f.pool.pool, (uint64_t)MOST * GRANULE, &moves), SPW_OK);
    f.pool.vm.immediate = true;
    f.count = count;
    for (int i = 0; i < count; i++) {
        const struct spw_request request = {
            .bytes = GRANULE, .stream = &stream_a, .site = 1 + (uint32_t)i};
        struct spw_result result;

        assert_int_equal(spw_pool_alloc(f.pool.pool, &request, &result), SPW_OK);
        f.blocks[i] = result.address;
    }
    f.migrator = (struct spw_migrator){.pool = f.pool.pool,
                                       .counters = &f.pool.counters,
                                       .granule_bytes = GRANULE,
                                       .wait_ns = 100000,
                                       .overlap = true};
    spill(first, end);
    (void)spw_pool_trim(f.pool.pool, 0);
    spw_pool_set_limit(f.pool.pool, (uint64_t)(count - (end - first) + room) * GRANULE);
    spw_counter_set(&f.pool.counters.moves, 0);
    spw_counter_set(&f.pool.counters.stall_ns, 0);
    assert_true(spw_migrate_access_log_open(&f.log, f.pool.pool, &f.pool.counters));
    f.migrator.log = &f.log;
    f.migrator.guarded = guarded;
    spw_migrate_throttle_init(&f.throttle, f.pool.pool, 100000, guarded);
    f.prefetch = (struct spw_prefetch){.migrator = &f.migrator,
                                       .log = &f.log,
                                       .throttle = &f.throttle,
                                       .patience_ns = PATIENCE_NS};
}

static void close_fixture(void)
{
    fake_vm_complete(&f.pool.vm);
    spw_migrate_migration_give_up(&f.migrator);
    (void)spw_migrate_progress_completed(&f.throttle.stream_marks);
    (void)spw_migrate_progress_completed(&f.throttle.device_marks);
    spw_migrate_access_log_close(&f.log);
    pool_close(&f.pool);
}

static void submit(const uint64_t *addresses, size_t count)
{
    spw_migrate_barrier_acquire();
    spw_migrate_access_log_record(&f.log, addresses, count, /* kernel */ true);
    spw_migrate_barrier_release();
}

/* Uses blocks until `next` is the one to come. */
static void run_to(int next)
{
    do {
        submit(&f.blocks[f.next], 1);
        f.next = (f.next + 1) % f.count;
    } while (f.next != next);
}

/* The device has completed all work that was submitted so far. */
static void complete_all(void)
{
    const struct spw_access_log_snapshot now =
        spw_migrate_access_log_snapshot(&f.log, spw_migrate_barrier_submissions());

    f.pool.vm.immediate = true;
    spw_migrate_progress_set(&f.throttle.device_marks, NULL, &now);
}

/* The program is predicted, and `next` comes next. */
static void learn(int next)
{
    uint64_t events, period;

    run_to(0);
    run_to(0);
    run_to(next);
    assert_true(spw_migrate_access_log_find_period(&f.log, &events, &period));
    assert_int_equal(period, f.count);
}

static void advance(void)
{
    spw_migrate_prefetch_advance(&f.prefetch, /* needed */ false, NULL, 0);
}

static void advance_for(int block)
{
    spw_migrate_prefetch_advance(&f.prefetch, /* needed */ true, &f.blocks[block], 1);
}

static uint64_t prefetches(void)
{
    return spw_counter_get(&f.pool.counters.prefetches);
}

static uint64_t moves(void)
{
    return spw_counter_get(&f.pool.counters.moves);
}

static bool is_on_host(int block)
{
    return fake_vm_on_host(&f.pool.vm, f.blocks[block], GRANULE) == 1;
}

/* Granules of the newest migration in flight that go to a tier. */
static size_t going_to(enum spw_tier tier)
{
    size_t newest = (f.migrator.first + f.migrator.in_flight - 1) % SPW_MOVES, count = 0;
    const struct spw_access_log_watch *watched = &f.migrator.migrations[newest].watched;

    for (size_t i = 0; i < watched->count; i++) {
        count += watched->places[i].to == tier;
    }
    return count;
}

/* ---- what is begun, and when ---- */

static void test_nothing_is_predicted(void **state)
{
    open_fixture(100, 50, 60, 0, false);
    run_to(50);
    advance();
    assert_int_equal(f.migrator.in_flight, 0);
    assert_int_equal(prefetches(), 0);
    close_fixture();
}

/* What is used next comes, what was used just now goes, and half a batch of room is kept. */
static void test_swap(void **state)
{
    static const struct {
        int room;
        size_t in, out;
    } cases[] = {{0, 0, 12}, {6, 6, 12}, {9, 9, 9}, {12, 12, 6}, {18, 12, 0}, {30, 12, 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_fixture(1000, 500, 600, cases[i].room, false);
        learn(480);
        advance();
        assert_int_equal(f.migrator.in_flight, 1);
        assert_int_equal(prefetches(), 1);
        assert_int_equal(moves(), 0);
        assert_int_equal(going_to(SPW_TIER_DEVICE), cases[i].in);
        assert_int_equal(going_to(SPW_TIER_HOST), cases[i].out);
        advance();
        assert_int_equal(moves(), 1);
        for (int k = 0; k < 1000; k++) {
            bool was_there = k >= 500 && k < 600, came = k >= 500 && k < 500 + (int)cases[i].in;

            assert_true(k >= 440 && k < 480 ? true : is_on_host(k) == (was_there && !came));
        }
        close_fixture();
    }
}

/* A batch depends on what is on the host, up to a bound that depends on the device. */
static void test_size_of_a_batch(void **state)
{
    static const struct {
        int count, hosts;
        size_t batch;
    } cases[] = {
        {100, 50, 4},      /* the smallest at all */
        {1200, 48, 6},     /* an eighth of what is on the host */
        {1200, 240, 30},   /* the same */
        {1200, 600, 18},   /* a 32nd of the device */
        {1200, 599, 18},   /* in whole granules */
        {4096, 1024, 96},  /* 3072 / 32 */
        {MOST, 2048, 128}, /* the largest at all */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int count = cases[i].count, hosts = cases[i].hosts;

        open_fixture(count, count - hosts, count, 0, false);
        learn(count - hosts - 1);
        advance();
        assert_int_equal(f.migrator.in_flight, 1);
        assert_int_equal(going_to(SPW_TIER_HOST), cases[i].batch);
        close_fixture();
    }
}

/* Less than a batch waits until the first of it is needed within a 32nd of the period. */
static void test_less_than_a_batch(void **state)
{
    enum { COUNT = 1600, FIRST = 800, NEAR = COUNT / 32 };

    for (int hosts = 3; hosts <= 4; hosts++) { /* a batch is of 4 */
        for (int ahead = NEAR - 1; ahead <= NEAR; ahead++) {
            open_fixture(COUNT, FIRST, FIRST + hosts, 100, false);
            learn(FIRST - ahead);
            advance();
            assert_int_equal(f.migrator.in_flight, ahead < NEAR || hosts >= 4);
            assert_int_equal(prefetches(), f.migrator.in_flight);
            close_fixture();
        }
    }
}

/* A device that need not idle is worth a part of a batch. */
static void test_small_batches_beside_work(void **state)
{
    enum { COUNT = 1600, FIRST = 800 };

    for (int busy = 0; busy <= 1; busy++) {
        open_fixture(COUNT, FIRST, FIRST + 3, 100, true);
        f.migrator.device_busy = busy;
        learn(FIRST - 200);
        advance();
        assert_int_equal(f.migrator.in_flight, busy);
        close_fixture();
    }
}

/* A single granule that is needed soon. */
static void test_one_granule(void **state)
{
    open_fixture(1000, 500, 501, 20, false);
    learn(490);
    advance();
    assert_int_equal(f.migrator.in_flight, 1);
    assert_int_equal(going_to(SPW_TIER_DEVICE), 1);
    close_fixture();
}

/* What cannot begin is no prefetch. */
static void test_refused(void **state)
{
    open_fixture(1000, 500, 600, 20, false);
    learn(480);
    f.migrator.skip = 1;
    advance();
    assert_int_equal(f.migrator.in_flight, 0);
    assert_int_equal(prefetches(), 0);
    assert_int_not_equal(f.prefetch.quiet_until, 0); /* the plan was of no use */
    close_fixture();
}

/* ---- when plans are made ---- */

/* A plan is made now and then; the checks begin to count anew. */
static void test_distance_of_plans(void **state)
{
    static const struct {
        int count;
        uint64_t events;
    } cases[] = {{512, 16}, {2048, 64}, {4096, 128}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_fixture(cases[i].count, 200, 300, 0, false);
        learn(190);
        f.prefetch.calls = 5;
        advance();
        assert_int_equal(f.prefetch.plan_at, f.log.predictor.count + cases[i].events);
        assert_int_equal(f.prefetch.period, cases[i].count);
        assert_int_equal(f.prefetch.calls, 0);
        close_fixture();
    }
}

/* After a plan without a migration there is a pause, during which none is made. */
static void test_pause_after_a_useless_plan(void **state)
{
    uint64_t before;

    open_fixture(1600, 800, 803, 100, false);
    learn(400);
    before = spw_clock_ns();
    advance();
    assert_int_equal(f.migrator.in_flight, 0);
    assert_in_range(f.prefetch.quiet_until, before + 1, before + UINT64_C(10000000000));
    run_to(790);
    f.prefetch.quiet_until = UINT64_MAX;
    advance();
    assert_int_equal(f.migrator.in_flight, 0);
    f.prefetch.quiet_until = spw_clock_ns();
    advance();
    assert_int_equal(f.migrator.in_flight, 1);
    close_fixture();
}

/* No pause while nothing is predicted, nor after a plan that was of use. */
static void test_no_pause(void **state)
{
    open_fixture(1000, 500, 600, 20, false);
    run_to(480);
    advance();
    assert_int_equal(f.prefetch.quiet_until, 0);
    run_to(0);
    learn(480);
    advance();
    assert_int_equal(f.migrator.in_flight, 1);
    assert_int_equal(f.prefetch.quiet_until, 0);
    close_fixture();
}

/* Every eighth submission looks after prefetching. */
static void test_checks(void **state)
{
    open_fixture(100, 50, 60, 0, false);
    for (int i = 0; i < CHECKS; i++) {
        assert_false(spw_migrate_prefetch_is_due(&f.prefetch));
        assert_false(spw_migrate_prefetch_count(&f.prefetch));
    }
    assert_true(spw_migrate_prefetch_is_due(&f.prefetch));
    assert_true(spw_migrate_prefetch_count(&f.prefetch));
    advance();
    assert_false(spw_migrate_prefetch_is_due(&f.prefetch));
    close_fixture();
}

/* A submission advances when a plan is due or a migration is in flight. */
static void test_before_a_submission(void **state)
{
    open_fixture(1000, 500, 600, 20, false);
    learn(480);
    f.prefetch.plan_at = f.log.predictor.count + 1;
    spw_migrate_prefetch_before_submit(&f.prefetch, NULL, 0, NULL);
    assert_int_equal(f.migrator.in_flight, 0);
    run_to(481);
    spw_migrate_prefetch_before_submit(&f.prefetch, NULL, 0, NULL);
    assert_int_equal(f.migrator.in_flight, 1);
    f.prefetch.plan_at = UINT64_MAX;
    spw_migrate_prefetch_before_submit(&f.prefetch, NULL, 0, NULL);
    assert_int_equal(moves(), 1);
    close_fixture();
}

/* ---- what is in flight ---- */

/* The next migration begins when the first is copied, before its switch. */
static void test_next_begins_before_the_switch(void **state)
{
    open_fixture(1000, 500, 600, 100, false);
    learn(480);
    advance();
    assert_int_equal(f.migrator.in_flight, 1);
    f.pool.vm.immediate = false;
    run_to(481);
    advance(); /* it is copied */
    assert_int_equal(prefetches(), 2);
    assert_int_equal(f.migrator.in_flight, 1);
    close_fixture();
}

/* Only beside work are addresses mapped ahead of a large block. */
static void test_map_ahead(void **state)
{
    for (int busy = 0; busy < 2; busy++) {
        open_fixture(1000, 500, 600, 100, /* guarded */ busy);
        f.migrator.device_busy = busy;
        learn(480);
        complete_all();
        advance();
        assert_int_equal(f.migrator.in_flight, 1);
        spw_pool_map_ahead(f.pool.pool, 3);
        assert_true(spw_migrate_prefetch_finish_one(&f.prefetch));
        assert_int_equal(f.migrator.device_busy, busy);
        assert_int_equal(f.pool.pool->space.ahead, busy ? SPW_TUNE_BATCH_MIN : 0);
        close_fixture();
    }
}

/* Copies that are not done are waited for only if the program needs what they bring. */
static void test_copies_that_are_needed(void **state)
{
    open_fixture(1000, 500, 600, 100, false);
    learn(480);
    f.pool.vm.immediate = false;
    advance();
    assert_int_equal(f.migrator.in_flight, 1);
    advance();
    assert_int_equal(f.migrator.in_flight, 1);
    assert_int_equal(prefetches(), 1);
    assert_int_equal(spw_counter_get(&f.pool.counters.stall_ns), 0);
    f.migrator.in_flight = 1;
    fake_vm_complete(&f.pool.vm);
    f.pool.vm.immediate = true;
    f.prefetch.quiet_until = UINT64_MAX;
    advance_for(500);
    assert_int_equal(moves(), 1);
    assert_int_equal(f.migrator.in_flight, 0);
    assert_false(is_on_host(500));
    close_fixture();
}

/* Two are in flight, and the program needs what the second brings. */
static void test_both_are_needed(void **state)
{
    for (int second = 0; second < 2; second++) {
        open_fixture(1000, 500, 600, 100, false);
        learn(480);
        advance();
        advance_for(second ? 515 : 400);
        assert_int_equal(prefetches(), 2);
        assert_int_equal(moves(), second ? 2 : 1);
        assert_int_equal(f.migrator.in_flight, second ? 0 : 1);
        assert_int_equal(is_on_host(515), !second);
        close_fixture();
    }
}

/* Beside work the next one begins while the first still copies, and after each switch. */
static void test_beside_work(void **state)
{
    for (int busy = 0; busy < 2; busy++) {
        open_fixture(1000, 500, 600, 100, true);
        learn(480);
        f.pool.vm.immediate = false;
        f.migrator.device_busy = busy;
        advance();
        assert_int_equal(f.migrator.in_flight, 1);
        advance(); /* it is not time for a plan */
        assert_int_equal(f.migrator.in_flight, 1);
        f.prefetch.plan_at = f.log.predictor.count;
        advance();
        assert_int_equal(f.migrator.in_flight, busy ? 2 : 1);
        f.prefetch.plan_at = 0;
        advance(); /* there are not more than two, and no plan is made for another */
        assert_int_equal(prefetches(), busy ? 2 : 1);
        assert_int_equal(f.prefetch.quiet_until, 0);
        close_fixture();
    }
}

static void test_next_begins_after_a_switch_beside_work(void **state)
{
    open_fixture(1000, 500, 600, 100, true);
    learn(480);
    complete_all();
    advance();
    assert_int_equal(prefetches(), 1);
    f.prefetch.plan_at = UINT64_MAX;
    advance();
    assert_int_equal(moves(), 1);
    assert_true(f.migrator.device_busy);
    assert_int_equal(f.migrator.in_flight, 1);
    assert_int_equal(prefetches(), 2);
    close_fixture();
}

static void before_submission(void)
{
    spw_migrate_prefetch_before_submit(&f.prefetch, NULL, 0, &stream_b);
}

/* The program is 180 events ahead of the device, which has done what came before. No plan is due.
 */
static void run_ahead(void)
{
    learn(280);
    f.throttle.wait_ns = 50000000; /* enough for two migrations on a loaded machine */
    f.prefetch.period = (uint64_t)f.count;
    f.prefetch.plan_at = UINT64_MAX;
    f.migrator.device_busy = true;
    complete_all();
    before_submission();
    run_to(300);
    f.pool.vm.immediate = false;
    before_submission(); /* sets a mark */
    run_to(480);
}

/* While the program is held back, it submits nothing. With `guarded` migrations go on. */
static void test_migrates_while_it_waits(void **state)
{
    for (int guarded = 0; guarded < 2; guarded++) {
        open_fixture(1000, 500, 600, 100, guarded);
        run_ahead();
        assert_int_equal(f.migrator.in_flight, 0);
        before_submission();
        assert_int_equal(f.throttle.pause, SPW_TUNE_MAX_BACKOFF);
        assert_int_equal(f.migrator.in_flight, guarded ? 2 : 0);
        assert_int_equal(prefetches(), guarded ? 2 : 0);
        close_fixture();
    }
}

/* Without a change no second plan is made during a wait. */
static void test_one_plan_while_it_waits(void **state)
{
    open_fixture(1000, 500, 600, 100, true);
    run_ahead();
    f.migrator.skip = 1000; /* no migration begins */
    before_submission();
    assert_int_equal(f.migrator.skip, 999);
    close_fixture();
}

/* Finishing one, and all; they tell whether that can have given room. */
static void test_finish(void **state)
{
    open_fixture(1000, 500, 600, 100, false);
    assert_false(spw_migrate_prefetch_finish_one(&f.prefetch));
    learn(480);
    advance();
    f.migrator.guarded = true; /* begins the second beside the first */
    f.migrator.device_busy = true;
    f.pool.vm.immediate = false;
    f.pool.vm.fail_call = FAKE_QUERY;
    f.prefetch.plan_at = 0;
    f.prefetch.quiet_until = 0;
    advance();
    f.migrator.guarded = false;
    f.pool.vm.immediate = true;
    fake_vm_complete(&f.pool.vm);
    assert_int_equal(f.migrator.in_flight, 2);
    assert_true(spw_migrate_prefetch_finish_one(&f.prefetch));
    assert_int_equal(f.migrator.in_flight, 1);
    assert_null(f.migrator.to_release);
    spw_migrate_prefetch_finish_all(&f.prefetch);
    assert_int_equal(f.migrator.in_flight, 0);
    assert_null(f.migrator.to_release);
    assert_int_equal(moves(), 2);
    assert_false(spw_migrate_prefetch_finish_one(&f.prefetch));
    close_fixture();
}

/* ---- what is used all the time ---- */

/* With `guarded` a block that submitted work may still use stays where it is. If it is so at every
 * plan of more than a period, and the block is used soon, the device must idle for it. */
static void test_hot_blocks(void **state)
{
    for (int soon = 0; soon < 2; soon++) {
        open_fixture(64, 40, 41, 20, true);
        learn(soon ? 25 : 24); /* the lead is 16 events */
        for (int periods = 0; periods < 3; periods++) {
            bool moves = soon && periods == 2;

            spw_migrate_throttle_submitter(&f.throttle, &f.log, NULL, 0, 0, false, NULL, NULL);
            run_to(f.next);
            assert_non_null(spw_migrate_throttle_completed(&f.throttle, &f.log));
            f.prefetch.quiet_until = 0;
            advance();
            assert_int_equal(f.migrator.in_flight, moves);
            assert_int_equal(prefetches(), moves);
        }
        if (soon) {
            assert_false(f.migrator.migrations[f.migrator.first].detached);
            assert_int_equal(going_to(SPW_TIER_DEVICE), 1);
            assert_int_equal(f.prefetch.quiet_until, 0);
        }
        close_fixture();
    }
}

/* A plan that makes room fetches nothing, and so tells nothing of what is in use. */
static void test_plans_that_make_room(void **state)
{
    open_fixture(64, 40, 41, 20, true);
    learn(25);
    for (int periods = 0; periods < 3; periods++) {
        const struct spw_access_log_goal room = {.bytes = GRANULE, .most = 4};

        spw_migrate_throttle_submitter(&f.throttle, &f.log, NULL, 0, 0, false, NULL, NULL);
        run_to(f.next);
        f.prefetch.quiet_until = 0;
        advance();
        spw_migrate_access_log_plan(&f.log, &room, &f.prefetch.plan);
    }
    assert_int_equal(f.migrator.in_flight, 1);
    close_fixture();
}

/* What a call needs is looked at after the wait: a migration that began during the wait, and that
 * the call does not need, is not waited for. */
static void test_needs_after_the_wait(void **state)
{
    open_fixture(1000, 500, 600, 100, true);
    run_ahead();
    before_submission();
    assert_int_equal(f.migrator.in_flight, 2);
    f.prefetch.plan_at = UINT64_MAX;
    spw_migrate_prefetch_before_submit(&f.prefetch, &f.blocks[400], 1, &stream_b);
    assert_int_equal(f.migrator.in_flight, 2);
    spw_migrate_prefetch_before_submit(&f.prefetch, &f.blocks[500], 1, &stream_b);
    assert_true(f.migrator.in_flight < 2);
    close_fixture();
}

/* Once it was found unused, or on the device, the period begins again. */
static void test_a_block_cools(void **state)
{
    open_fixture(64, 40, 41, 20, true);
    learn(25);
    for (int periods = 0; periods < 3; periods++) {
        spw_migrate_throttle_submitter(&f.throttle, &f.log, NULL, 0, 0, false, NULL, NULL);
        run_to(f.next);
        if (periods == 1) {
            complete_all();
        }
        f.migrator.skip = 1; /* nothing moves */
        f.prefetch.quiet_until = 0;
        advance();
        assert_int_equal(f.prefetch.hot_plan.count, 0);
    }
    close_fixture();
}

/* One that was not used since the device passed a mark needs no idle device. */
static void test_cold_blocks_beside_work(void **state)
{
    open_fixture(64, 40, 44, 20, true);
    learn(30);
    run_to(f.next);
    spw_migrate_throttle_submitter(&f.throttle, &f.log, NULL, 0, 0, false, NULL, NULL);
    advance();
    assert_int_equal(f.migrator.in_flight, 1);
    assert_true(f.migrator.migrations[f.migrator.first].detached);
    close_fixture();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_predicted),
        cmocka_unit_test(test_swap),
        cmocka_unit_test(test_size_of_a_batch),
        cmocka_unit_test(test_less_than_a_batch),
        cmocka_unit_test(test_small_batches_beside_work),
        cmocka_unit_test(test_one_granule),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_distance_of_plans),
        cmocka_unit_test(test_pause_after_a_useless_plan),
        cmocka_unit_test(test_no_pause),
        cmocka_unit_test(test_checks),
        cmocka_unit_test(test_before_a_submission),
        cmocka_unit_test(test_next_begins_before_the_switch),
        cmocka_unit_test(test_map_ahead),
        cmocka_unit_test(test_copies_that_are_needed),
        cmocka_unit_test(test_both_are_needed),
        cmocka_unit_test(test_beside_work),
        cmocka_unit_test(test_next_begins_after_a_switch_beside_work),
        cmocka_unit_test(test_migrates_while_it_waits),
        cmocka_unit_test(test_one_plan_while_it_waits),
        cmocka_unit_test(test_finish),
        cmocka_unit_test(test_hot_blocks),
        cmocka_unit_test(test_a_block_cools),
        cmocka_unit_test(test_plans_that_make_room),
        cmocka_unit_test(test_needs_after_the_wait),
        cmocka_unit_test(test_cold_blocks_beside_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
