/* Making room on the device: what is evicted, what is placed on the host, what is refused. */
#include "migrate/migrate.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "malloc_faults.h"
#include "tier_fixture.h"
#include "migrate/move/barrier.h"

/* ---- what makes room ---- */

/* Blocks that were not used for long go to the host, the oldest first. */
static void test_cold_blocks_are_evicted(void **state)
{
    uint64_t address;

    tier_open(tier_usual());
    tier_fill_and_age(COLD);
    address = tier_take(BLOCK);
    assert_int_equal(fake_vm_on_host(&tier.pool.vm, address, BLOCK * GRANULE), 0);
    tier_expect_evicted(1);
    assert_int_equal(tier.moved, 1);
    assert_int_equal(tier.moved_to[0], tier.blocks[0]);
    assert_int_equal(counter(&tier.pool.counters.moves), 1);
    assert_int_equal(counter(&tier.pool.counters.spilled_bytes), BLOCK * GRANULE);
    assert_int_equal(counter(&tier.pool.counters.placed_bytes), 0);
    assert_int_equal(counter(&tier.pool.counters.abandoned_moves), 0);
    tier_close();
}

/* Without such blocks the new block is placed on the host. */
static void test_warm_blocks_stay(void **state)
{
    uint64_t address;

    tier_open(tier_usual());
    tier_fill_and_age(COLD - 1);
    address = tier_take(BLOCK);
    assert_int_equal(fake_vm_on_host(&tier.pool.vm, address, BLOCK * GRANULE), BLOCK);
    tier_expect_evicted(0);
    assert_int_equal(counter(&tier.pool.counters.moves), 0);
    assert_int_equal(counter(&tier.pool.counters.spilled_bytes), BLOCK * GRANULE);
    assert_int_equal(counter(&tier.pool.counters.placed_bytes), BLOCK * GRANULE);
    tier_close();
}

/* A use makes a block warm again; one that came after the log was opened is warm at first. */
static void test_uses_count(void **state)
{
    tier_open(tier_usual());
    tier_fill_and_age(COLD);
    tier_give(tier_take(BLOCK)); /* opens the access log, and evicts the first block */
    for (int i = 1; i < BLOCKS - 3; i++) {
        spw_migrate_barrier_acquire();
        spw_migrate_use(tier.tier, &tier.blocks[i], 1, true);
        spw_migrate_barrier_release();
    }
    (void)tier_take(3 * BLOCK);
    for (int i = 0; i < BLOCKS; i++) {
        assert_int_equal(tier_is_on_host(i), i == 0 || i == BLOCKS - 3 || i == BLOCKS - 2);
    }
    tier_close();
}

/* A block that is entered, though no event tells of it, is none that was there for long; an
 * untracked one is never chosen. */
static void test_entered_blocks(void **state)
{
    for (int untracked = 0; untracked < 2; untracked++) {
        tier_open(tier_usual());
        tier_fill_and_age(COLD);
        spw_migrate_entered(tier.tier, tier.blocks[0], BLOCK * GRANULE, 7, untracked);
        tier_give(tier_take(BLOCK)); /* opens the access log, and evicts the first block */
        tier_expect_evicted(1);
        spw_migrate_entered(tier.tier, tier.blocks[1], BLOCK * GRANULE, 7, untracked);
        (void)tier_take(2 * BLOCK);
        for (int i = 0; i < BLOCKS; i++) {
            assert_int_equal(tier_is_on_host(i), i == 0 || i == 2 || i == 3);
        }
        tier_close();
    }
}

/* As much as is requested is evicted, so that the next request of that size finds room; at least a
 * batch, and for a large request, part of which has room, at most a batch more than is missing. */
static void test_how_much_is_evicted(void **state)
{
    static const struct {
        int freed;              /* blocks, before */
        int requested, evicted; /* granules */
    } cases[] = {{0, 2, 2}, {0, 1, 2}, {1, 3, 3}, {4, 10, 5}, {0, 20, 20}, {8, 20, 7}, {6, 14, 5}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tier_open(tier_usual());
        tier_fill_and_age(COLD);
        for (int k = 0; k < cases[i].freed; k++) {
            tier_give(tier.blocks[BLOCKS - 2 - k]);
        }
        (void)tier_take((uint64_t)cases[i].requested);
        assert_int_equal(tier_on_host(), cases[i].evicted);
        tier_close();
    }
}

/* A block that belongs on the device evicts warm ones too, and never goes to the host. */
static void test_on_device(void **state)
{
    const struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .on_device = true};
    struct spw_request request = {
        .bytes = BLOCK * GRANULE, .stream = &stream_a, .placement = &placement, .may_move = true};
    uint64_t address;

    tier_open(tier_usual());
    tier_fill_and_age(0);
    assert_int_equal(tier_try_request(&request, &address), SPW_OK);
    assert_int_equal(fake_vm_on_host(&tier.pool.vm, address, BLOCK * GRANULE), 0);
    tier_expect_evicted(1);
    request.may_move = false;
    assert_int_equal(tier_try_request(&request, &address), SPW_E_LIMIT);
    request.may_move = true;
    request.bytes = (DEVICE - BLOCK) * GRANULE;
    assert_int_equal(tier_try_request(&request, &address), SPW_OK);
    assert_int_equal(fake_vm_on_host(&tier.pool.vm, address, request.bytes), 0);
    tier_expect_evicted(BLOCKS);
    tier_close();
}

/* More than one migration can hold. */
static void test_evicted_in_steps(void **state)
{
    enum { LARGE = 600, REQUESTED = 400 };
    const struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .on_device = true};
    const struct spw_request request = {.bytes = (uint64_t)REQUESTED * GRANULE,
                                        .stream = &stream_a,
                                        .placement = &placement,
                                        .may_move = true};
    struct spw_migrate_config config = tier_usual();
    uint64_t address;

    config.limit.bytes = (uint64_t)LARGE * GRANULE;
    tier_open(config);
    spw_pool_set_limit(tier.pool.pool, (uint64_t)LARGE * GRANULE);
    for (int i = 0; i < LARGE; i += LARGE / 6) {
        (void)tier_take(LARGE / 6);
    }
    assert_int_equal(tier_try_request(&request, &address), SPW_OK);
    assert_int_equal(tier_on_host(), REQUESTED);
    assert_int_equal(counter(&tier.pool.counters.moves), 2);
    tier_close();
}

/* Where nothing may move, the new block is placed. */
static void test_nothing_may_move(void **state)
{
    const struct spw_request request = {.bytes = BLOCK * GRANULE, .stream = &stream_a};
    uint64_t address;

    tier_open(tier_usual());
    tier_fill_and_age(COLD);
    assert_int_equal(tier_try_request(&request, &address), SPW_OK);
    assert_int_equal(fake_vm_on_host(&tier.pool.vm, address, BLOCK * GRANULE), BLOCK);
    tier_expect_evicted(0);
    tier_close();
}

/* A request that device and host together cannot hold moves nothing. */
static void test_impossible_requests(void **state)
{
    const struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .on_device = true};
    struct spw_request request = {.bytes = (DEVICE + 1) * GRANULE,
                                  .stream = &stream_a,
                                  .placement = &placement,
                                  .may_move = true};
    uint64_t address;

    tier_open(tier_usual());
    tier_fill_and_age(COLD);
    assert_int_equal(tier_try(HOST + 1, &address), SPW_E_LIMIT);
    assert_int_equal(tier_try_request(&request, &address), SPW_E_LIMIT);
    request.bytes = UINT64_MAX / 2;
    assert_int_not_equal(tier_try_request(&request, &address), SPW_OK);
    assert_int_equal(tier.pool.vm.calls[FAKE_PROBE], 0); /* not even the host was looked at */
    tier_expect_evicted(0);
    request.bytes = DEVICE * GRANULE;
    assert_int_equal(tier_try_request(&request, &address), SPW_OK);
    tier_expect_evicted(BLOCKS);
    assert_int_equal(tier_try(HOST - DEVICE, &address), SPW_OK);
    assert_int_equal(tier_try(1, &address), SPW_E_LIMIT);
    assert_int_equal(counter(&tier.pool.counters.live_bytes), (DEVICE + HOST) * (uint64_t)GRANULE);
    tier_close();
}

/* What is answered is what the pool said, not what became of the attempts to make room. */
static void test_the_answer_of_the_pool(void **state)
{
    struct spw_result result;
    const struct spw_request request = {.bytes = GRANULE, .stream = &stream_a, .may_move = true};

    tier_open(tier_usual());
    tier_fill_and_age(COLD);
    tier.pool.vm.no_host = tier.pool.vm.no_pinned = true;
    assert_int_equal(spw_migrate_alloc(tier.tier, &request, SPW_E_NO_MEMORY, &result),
                     SPW_E_NO_MEMORY);
    assert_int_equal(spw_migrate_alloc(tier.tier, &request, SPW_E_LIMIT, &result), SPW_E_LIMIT);
    tier_expect_evicted(0);
    tier_close();
}

/* ---- without a host that helps ---- */

/* When the host is of no use, the pool waits for pending work as it does without a host tier. */
static void test_waits_when_the_host_is_of_no_use(void **state)
{
    uint64_t address;

    tier_open(tier_usual());
    tier.pool.vm.no_host = tier.pool.vm.no_pinned = true;
    tier.pool.vm.immediate = false;
    tier.pool.vm.impatient = true;
    tier_fill_and_age(0);
    tier_give(tier.blocks[0]);
    assert_int_equal(pool_try(tier.pool.pool, BLOCK * GRANULE, NULL, NULL, &address), SPW_E_LIMIT);
    assert_int_equal(tier_try_request(&(struct spw_request){.bytes = BLOCK * GRANULE}, &address),
                     SPW_OK);
    assert_int_equal(tier.pool.vm.calls[FAKE_WAIT_HOST], 1);
    assert_int_equal(tier_try(1, &address), SPW_E_LIMIT);
    assert_false(spw_migrate_has_room(tier.tier));
    assert_false(spw_migrate_can_map_host(tier.tier));
    assert_false(spw_migrate_evict(tier.tier));
    assert_false(spw_migrate_is_recording(tier.tier));
    tier_close();
}

/* Memory that can be placed on the host, but not moved. */
static void test_memory_that_does_not_move(void **state)
{
    uint64_t address, bytes = 4711;

    tier_open(tier_usual());
    tier.pool.vm.no_moves = true;
    tier_fill_and_age(COLD);
    address = tier_take(BLOCK);
    assert_int_equal(fake_vm_on_host(&tier.pool.vm, address, BLOCK * GRANULE), BLOCK);
    tier_expect_evicted(0);
    assert_false(spw_migrate_evict(tier.tier));
    assert_true(spw_migrate_can_map_host(tier.tier));
    assert_false(spw_migrate_is_recording(tier.tier));
    assert_int_equal(spw_migrate_evict_all(tier.tier, NULL, false, WAIT_NS, &bytes),
                     SPW_E_UNSUPPORTED);
    assert_int_equal(bytes, 0);
    tier_give(tier.blocks[0]);
    tier_give(tier.blocks[1]);
    tier_give(tier.blocks[2]);
    spw_migrate_idle(tier.tier);
    assert_int_equal(fake_vm_on_host(&tier.pool.vm, address, BLOCK * GRANULE), BLOCK);
    tier_close();
}

/* Page-locked memory only. */
static void test_pinned_memory(void **state)
{
    uint64_t address;

    tier_open(tier_usual());
    tier.pool.vm.no_host = true;
    tier_fill_and_age(COLD);
    address = tier_take(BLOCK);
    assert_true(address >= FAKE_PINNED);
    assert_false(spw_migrate_can_map_host(tier.tier));
    assert_true(spw_migrate_has_room(tier.tier));
    assert_false(spw_migrate_is_recording(tier.tier));
    tier_expect_evicted(0);
    assert_int_equal(spw_pool_free(tier.pool.pool, address, &stream_a), SPW_OK);
    tier_close();
}

/* Without memory for the access log, blocks are evicted by their age in frees. */
static void test_without_an_access_log(void **state)
{
    for (int frees = COLD - 1; frees <= COLD; frees++) {
        tier_open(tier_usual());
        tier_fill_and_age(frees);
        calls_until_failure = 1;
        tier_give(tier_take(BLOCK));
        assert_int_equal(calls_until_failure, 0);
        assert_false(spw_migrate_is_recording(tier.tier));
        tier_expect_evicted(frees == COLD ? 1 : 0);
        (void)tier_take(BLOCK);
        assert_false(spw_migrate_is_recording(tier.tier)); /* it is tried once */
        tier_close();
    }
}

/* During a capture the host cannot be tried: the request is refused, and the next one tries it. */
static void test_probe_in_a_capture(void **state)
{
    uint64_t address;

    tier_open(tier_usual());
    tier_fill_and_age(COLD);
    tier.pool.vm.capturing = true;
    assert_int_equal(tier_try(BLOCK, &address), SPW_E_LIMIT);
    assert_int_equal(tier.pool.vm.calls[FAKE_PROBE], 0);
    tier.pool.vm.capturing = false;
    (void)tier_take(BLOCK);
    tier_expect_evicted(1);
    tier_close();
}

static void test_no_memory_for_a_tier(void **state)
{
    struct spw_migrate_config config = tier_usual();
    struct spw_migrate *other = NULL;

    tier_open(tier_usual());
    config.pool = tier.pool.pool;
    calls_until_failure = 1;
    assert_int_equal(spw_migrate_create(&config, &other), SPW_E_METADATA_NOMEM);
    assert_null(other);
    spw_migrate_destroy(NULL);
    tier_close();
}

/* ---- the host ---- */

/* The host is looked at before a capture, if a shortage is near. */
static void test_prepare(void **state)
{
    enum { NEAR = DEVICE / 32 };

    tier_open(tier_usual());
    tier_fill(0, BLOCKS - NEAR / BLOCK);
    spw_migrate_prepare(tier.tier);
    assert_int_equal(tier.pool.vm.calls[FAKE_PROBE], 0);
    (void)tier_take(1);
    spw_migrate_prepare(tier.tier);
    assert_int_equal(tier.pool.vm.calls[FAKE_PROBE], 1);
    spw_migrate_prepare(tier.tier);
    assert_int_equal(tier.pool.vm.calls[FAKE_PROBE], 1);
    assert_false(spw_migrate_is_recording(tier.tier));
    tier_close();
}

static void test_has_room(void **state)
{
    struct spw_migrate_config config = tier_usual();

    config.limit.bytes = BLOCK * GRANULE;
    tier_open(config);
    assert_true(spw_migrate_has_room(tier.tier));
    tier_fill_and_age(0);
    (void)tier_take(1);
    assert_true(spw_migrate_has_room(tier.tier));
    (void)tier_take(1);
    assert_int_equal(tier_on_host(), BLOCK);
    assert_false(spw_migrate_has_room(tier.tier));
    spw_migrate_hold_moves(tier.tier);
    assert_false(spw_migrate_has_room(tier.tier)); /* does not wait */
    spw_migrate_release_moves(tier.tier);
    tier_close();
}

enum { LATER_NS = 25 * 1000 * 1000, CALL_NS = 1000 };

/* The time of the test, which passes by a little with each look at the clock; 0: the system's. */
static uint64_t test_time_ns;

/* In the place of the system's. */
int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    if (test_time_ns == 0) {
        return (int)syscall(SYS_clock_gettime, clock, ret_time);
    }
    test_time_ns += CALL_NS;
    ret_time->tv_sec = (time_t)(test_time_ns / 1000000000);
    ret_time->tv_nsec = (long)(test_time_ns % 1000000000);
    return 0;
}

/* The machine's own memory bounds what is taken, and is asked for now and then. */
static void test_machine_is_short(void **state)
{
    struct spw_migrate_config config = tier_usual();
    uint64_t address;

    config.host_room = tier_host_room;
    tier_open(config);
    tier.room = UINT64_MAX;
    tier_fill_and_age(0);
    test_time_ns = UINT64_C(1000000000000);
    (void)tier_take(4);
    assert_int_equal(tier.asked, 1);
    assert_int_equal(counter(&tier.pool.counters.host_limit_bytes), HOST * (uint64_t)GRANULE);
    tier.room = 3 * GRANULE;
    (void)tier_take(1);
    assert_int_equal(tier.asked, 1); /* the last answer is still good */
    test_time_ns += LATER_NS;
    (void)tier_take(1);
    assert_int_equal(tier.asked, 2);
    assert_int_equal(counter(&tier.pool.counters.host_limit_bytes), 8 * GRANULE);
    assert_int_equal(tier_try(3, &address), SPW_E_LIMIT);
    tier.room = (HOST - 6) * (uint64_t)GRANULE;
    test_time_ns += LATER_NS;
    spw_migrate_idle(tier.tier);
    assert_int_equal(tier.asked, 3);
    (void)tier_take(3);
    assert_int_equal(counter(&tier.pool.counters.host_limit_bytes), HOST * (uint64_t)GRANULE);
    test_time_ns = 0;
    tier_close();
}

/* A machine without any memory left does not close the tier. */
static void test_machine_has_none(void **state)
{
    struct spw_migrate_config config = tier_usual();
    uint64_t address;

    config.host_room = tier_host_room;
    tier_open(config);
    tier_fill_and_age(0);
    test_time_ns = UINT64_C(1000000000000);
    assert_int_equal(tier_try(1, &address), SPW_E_LIMIT);
    assert_int_equal(counter(&tier.pool.counters.host_limit_bytes), 1);
    assert_int_equal(tier.asked, 1);
    test_time_ns = 0;
    tier_close();
}

static enum spw_host_bound wall_of(uint64_t wall_bytes)
{
    assert_int_equal(wall_bytes, tier.wall * GRANULE);
    return SPW_HOST_BOUND_MEMLOCK;
}

/* Allocates on the host until the driver refuses more than so many granules. */
static void reach_wall(uint64_t granules, uint64_t pinned)
{
    struct spw_migrate_config config = tier_usual();
    uint64_t address;

    config.host_wall = wall_of;
    tier_open(config);
    tier.wall = granules + pinned;
    tier.pool.vm.most_host_chunks = granules;
    spw_counter_set(&tier.pool.counters.pinned_bytes, pinned * GRANULE);
    tier_fill_and_age(0);
    test_time_ns = UINT64_C(1000000000000);
    for (uint64_t i = 0; i < granules; i++) {
        (void)tier_take(1);
    }
    assert_int_equal(counter(&tier.pool.counters.host_refusals), 0);
    assert_int_equal(tier_try(1, &address), SPW_E_LIMIT);
    assert_int_equal(counter(&tier.pool.counters.host_refusals), 1);
    assert_int_equal(counter(&tier.pool.counters.host_wall_bytes), tier.wall * GRANULE);
    test_time_ns += LATER_NS;
}

/* The driver gives less page-locked memory than the budget: an eighth of what it gave is left to
 * the program, besides what the program has locked. */
static void test_wall(void **state)
{
    struct spw_counters *counters = &tier.pool.counters;
    uint64_t address, calls;

    reach_wall(12, 4);
    assert_int_equal(tier_try(1, &address), SPW_E_LIMIT);
    assert_int_equal(counter(&counters->host_limit_bytes), 10 * GRANULE);
    assert_int_equal(counter(&counters->host_bound), SPW_HOST_BOUND_MEMLOCK);
    calls = tier.pool.vm.calls[FAKE_CREATE];
    assert_int_equal(tier_try(1, &address), SPW_E_LIMIT);
    assert_int_equal(tier.pool.vm.calls[FAKE_CREATE], calls); /* the driver is not asked */
    tier.wall = 12;
    spw_counter_set(&counters->pinned_bytes, 0);
    test_time_ns += LATER_NS;
    assert_int_equal(tier_try(1, &address), SPW_E_LIMIT); /* it is full, though the limit is not */
    assert_int_equal(counter(&counters->host_refusals), 2);
    test_time_ns = 0;
    tier_close();
}

/* After a while the driver is asked again. */
static void test_wall_is_forgotten(void **state)
{
    reach_wall(12, 0);
    spw_migrate_idle(tier.tier);
    assert_int_equal(counter(&tier.pool.counters.host_limit_bytes),
                     (12 * GRANULE) - 12 * GRANULE / 8);
    tier.pool.vm.most_host_chunks = 0;
    test_time_ns += UINT64_C(61) * 1000 * 1000 * 1000;
    spw_migrate_idle(tier.tier);
    assert_int_equal(counter(&tier.pool.counters.host_limit_bytes), HOST * (uint64_t)GRANULE);
    assert_int_equal(counter(&tier.pool.counters.host_bound), SPW_HOST_BOUND_OPTION);
    (void)tier_take(1);
    test_time_ns = 0;
    tier_close();
}

/* One refusal may pass: the driver is asked twice. */
static void test_one_refusal_is_no_wall(void **state)
{
    tier_open(tier_usual());
    tier_fill_and_age(0);
    (void)tier_take(1);
    tier.pool.vm.fail_call = FAKE_CREATE;
    tier.pool.vm.fail_after = 0;
    (void)tier_take(1);
    assert_int_equal(counter(&tier.pool.counters.host_refusals), 0);
    tier_close();
}

/* Page-locked memory, where the device cannot map chunks of the host. */
static void test_wall_of_pinned_memory(void **state)
{
    uint64_t address;

    tier_open(tier_usual());
    tier.pool.vm.no_host = true;
    tier.pool.vm.most_host_chunks = 40;
    test_time_ns = UINT64_C(1000000000000);
    tier_fill_and_age(0);
    (void)tier_take(1);
    for (int i = 0; i < 100 && tier_try(1, &address) == SPW_OK; i++) {
    }
    assert_int_equal(tier_try(1, &address), SPW_E_LIMIT);
    assert_true(counter(&tier.pool.counters.host_wall_bytes) <= 40 * GRANULE);
    assert_true(counter(&tier.pool.counters.host_bytes) > 32 * GRANULE);
    test_time_ns += LATER_NS;
    assert_int_equal(tier_try(1, &address), SPW_E_LIMIT);
    assert_int_equal(counter(&tier.pool.counters.host_bound), SPW_HOST_BOUND_DRIVER);
    test_time_ns = 0;
    tier_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cold_blocks_are_evicted),
        cmocka_unit_test(test_warm_blocks_stay),
        cmocka_unit_test(test_uses_count),
        cmocka_unit_test(test_entered_blocks),
        cmocka_unit_test(test_how_much_is_evicted),
        cmocka_unit_test(test_on_device),
        cmocka_unit_test(test_evicted_in_steps),
        cmocka_unit_test(test_nothing_may_move),
        cmocka_unit_test(test_impossible_requests),
        cmocka_unit_test(test_the_answer_of_the_pool),
        cmocka_unit_test(test_waits_when_the_host_is_of_no_use),
        cmocka_unit_test(test_memory_that_does_not_move),
        cmocka_unit_test(test_pinned_memory),
        cmocka_unit_test(test_without_an_access_log),
        cmocka_unit_test(test_probe_in_a_capture),
        cmocka_unit_test(test_no_memory_for_a_tier),
        cmocka_unit_test(test_prepare),
        cmocka_unit_test(test_has_room),
        cmocka_unit_test(test_machine_is_short),
        cmocka_unit_test(test_wall),
        cmocka_unit_test(test_wall_is_forgotten),
        cmocka_unit_test(test_one_refusal_is_no_wall),
        cmocka_unit_test(test_wall_of_pinned_memory),
        cmocka_unit_test(test_machine_has_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
