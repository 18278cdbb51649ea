/* The access log: which blocks it knows, what it counts, and what is planned from it. */
#include "migrate/learn/access_log.h"

#include <string.h>

#include "malloc_faults.h"
#include "pool_fixture.h"

enum { DEVICE = 64, HOST = 64, MOST_FAULTS = 32 };

static struct {
    struct pool_fixture pool;
    struct spw_access_log log;
    uint64_t base; /* of the pool's large blocks */
} f;

static uint64_t take(uint64_t bytes, uint32_t site)
{
    const struct spw_request request = {.bytes = bytes, .stream = &stream_a, .site = site};
    struct spw_result result = {0};

    assert_int_equal(spw_pool_alloc(f.pool.pool, &request, &result), SPW_OK);
    return result.address;
}

static void open_pool(void)
{
    uint64_t bytes, granule;
    bool moves;

    memset(&f, 0, sizeof(f));
    pool_open_small(&f.pool, 256, DEVICE, 0);
    assert_int_equal(spw_pool_open_host(f.pool.pool, (uint64_t)HOST * GRANULE, &moves), SPW_OK);
    f.pool.vm.immediate = true;
    spw_pool_large_range(f.pool.pool, &f.base, &bytes, &granule);
}

static void open_log(void)
{
    assert_true(spw_migrate_access_log_open(&f.log, f.pool.pool, &f.pool.counters));
}

static void open_both(void)
{
    open_pool();
    open_log();
}

static void close_both(void)
{
    spw_migrate_access_log_close(&f.log);
    pool_close(&f.pool);
}

static uint32_t block_at(uint64_t address)
{
    return spw_migrate_block_index_find(&f.log.index, address);
}

static void record(uint64_t address)
{
    spw_migrate_access_log_record(&f.log, &address, 1, /* kernel */ true);
}

static uint64_t events(void)
{
    return spw_migrate_access_log_events(&f.log);
}

/* ---- opening ---- */

/* The blocks that are there are known, with their ages; other processes' logs count too. */
static void test_open(void **state)
{
    uint64_t a, b;

    open_pool();
    a = take(2 * GRANULE, 5);
    f.pool.vm.immediate = true;
    for (int i = 0; i < 3; i++) {
        pool_free(&f.pool, take(GRANULE, 6), &stream_a);
    }
    b = take(GRANULE, 7);
    assert_int_equal(atomic_load(&spw_migrate_access_log_count), 0);
    open_log();
    assert_int_equal(atomic_load(&spw_migrate_access_log_count), 1);
    assert_true(atomic_load(&f.log.on));
    assert_int_equal(events(), 0);
    assert_int_not_equal(block_at(a), 0);
    assert_int_equal(block_at(a), block_at(a + 2 * GRANULE - 1));
    assert_int_not_equal(block_at(a), block_at(b));
    assert_int_equal(f.log.predictor.blocks[block_at(a)].site, 5);
    assert_int_equal(f.log.predictor.blocks[block_at(a)].bytes, 2 * GRANULE);
    assert_int_equal(spw_migrate_predictor_age(&f.log.predictor, block_at(a)), 3);
    assert_int_equal(spw_migrate_predictor_age(&f.log.predictor, block_at(b)), 0);
    assert_false(f.log.incomplete);
    spw_migrate_access_log_close(&f.log);
    assert_int_equal(atomic_load(&spw_migrate_access_log_count), 0);
    assert_false(atomic_load(&f.log.on));
    pool_close(&f.pool);
}

/* Whichever allocation fails, nothing is left. */
static void test_no_memory(void **state)
{
    long failed = 0;

    open_pool();
    for (long before = live_allocations;; failed++) {
        assert_true(failed < MOST_FAULTS);
        calls_until_failure = failed + 1;
        if (spw_migrate_access_log_open(&f.log, f.pool.pool, &f.pool.counters)) {
            break;
        }
        assert_int_equal(live_allocations, before);
        assert_int_equal(atomic_load(&spw_migrate_access_log_count), 0);
    }
    calls_until_failure = 0;
    assert_int_equal(failed, 14); /* the log's own, the predictor's and the index's */
    close_both();
}

static void test_nothing_is_leaked(void **state)
{
    long before;

    open_pool();
    before = live_allocations;
    open_log();
    assert_int_equal(live_allocations, before + 14);
    spw_migrate_access_log_close(&f.log);
    assert_int_equal(live_allocations, before);
    pool_close(&f.pool);
}

/* ---- blocks ---- */

static void test_blocks_come_and_go(void **state)
{
    uint64_t other = f.base;

    open_both();
    other = f.base + 8 * GRANULE;
    spw_migrate_access_log_alloc(&f.log, f.base, GRANULE, 3);
    spw_migrate_access_log_alloc(&f.log, other, GRANULE, 4);
    assert_int_equal(events(), 2);
    assert_int_equal(f.log.predictor.blocks[block_at(other)].site, 4);
    spw_migrate_access_log_free(&f.log, other + 512); /* no block begins there */
    spw_migrate_access_log_free(&f.log, f.base + 4 * GRANULE);
    assert_int_equal(events(), 2);
    spw_migrate_access_log_free(&f.log, other);
    assert_int_equal(events(), 3);
    assert_int_equal(block_at(other), 0);
    assert_int_not_equal(block_at(f.base), 0);
    close_both();
}

/* Blocks elsewhere are no events. */
static void test_other_addresses(void **state)
{
    uint64_t bytes, end;

    open_both();
    spw_pool_large_range(f.pool.pool, &f.base, &bytes, &end);
    end = f.base + bytes;
    spw_migrate_access_log_alloc(&f.log, f.base - GRANULE, GRANULE, 3);
    spw_migrate_access_log_alloc(&f.log, end, GRANULE, 3);
    for (int untracked = 0; untracked < 2; untracked++) {
        spw_migrate_access_log_enter(&f.log, f.base - GRANULE, GRANULE, 3, untracked);
        spw_migrate_access_log_enter(&f.log, end, GRANULE, 3, untracked);
    }
    assert_int_equal(f.log.predictor.block_count, 1); /* none */
    spw_migrate_access_log_free(&f.log, f.base - GRANULE);
    spw_migrate_access_log_free(&f.log, end);
    record(f.base - 1);
    record(end);
    assert_int_equal(events(), 0);
    assert_int_equal(f.log.clock, 2);
    close_both();
}

/* A new block ends all blocks in whose place it is, whose frees were not seen. */
static void test_frees_that_were_not_seen(void **state)
{
    open_both();
    for (uint64_t i = 0; i < 4; i++) {
        spw_migrate_access_log_alloc(&f.log, f.base + i * GRANULE, GRANULE, 3);
    }
    assert_int_equal(events(), 4);
    spw_migrate_access_log_alloc(&f.log, f.base + GRANULE / 2, 2 * GRANULE, 4);
    assert_int_equal(events(), 4 + 3 + 1);
    assert_int_equal(block_at(f.base), 0);
    assert_int_equal(f.log.predictor.blocks[block_at(f.base + GRANULE)].site, 4);
    assert_int_equal(f.log.predictor.blocks[block_at(f.base + 3 * GRANULE)].site, 3);
    close_both();
}

/* With more blocks than it has numbers, the log vouches for nothing. */
static void test_too_many_blocks(void **state)
{
    struct spw_access_log_snapshot now;

    open_both();
    record(f.base);
    for (uint64_t i = 0; i + 1 < SPW_PREDICTOR_BLOCKS; i++) {
        spw_migrate_access_log_alloc(&f.log, f.base + i * 512, 512, 3);
    }
    assert_false(f.log.incomplete);
    record(f.base);
    spw_migrate_access_log_alloc(&f.log, f.base + SPW_PREDICTOR_BLOCKS * UINT64_C(512), 512, 3);
    assert_true(f.log.incomplete);
    for (int untracked = 0; untracked < 2; untracked++) {
        f.log.incomplete = false;
        spw_migrate_access_log_enter(&f.log, f.base + SPW_PREDICTOR_BLOCKS * UINT64_C(512), 512, 3,
                                     untracked);
        assert_true(f.log.incomplete);
    }
    record(f.base);
    spw_migrate_access_log_record(&f.log, &f.base, 1, /* kernel */ false);
    now = spw_migrate_access_log_snapshot(&f.log, 9);
    assert_int_equal(now.submissions, 9);
    assert_int_equal(now.complete, 1); /* not the first, which named no block */
    assert_int_equal(now.complete_non_kernel, 0);
    assert_int_equal(now.clock, 4);
    close_both();
}

/* ---- uses ---- */

static bool is_accessed(uint64_t granule, const struct spw_access_log_snapshot *since)
{
    return f.log.last_access[granule] > since->clock;
}

/* A use is one of all granules of the block, and of no others. */
static void test_granules_of_a_use(void **state)
{
    struct spw_access_log_snapshot since;
    uint64_t block;

    open_both();
    block = f.base + 2 * GRANULE + GRANULE / 2;
    spw_migrate_access_log_alloc(&f.log, block, 2 * GRANULE, 3);
    since = spw_migrate_access_log_snapshot(&f.log, 0);
    record(block + GRANULE);
    for (uint64_t i = 0; i < 8; i++) {
        assert_int_equal(is_accessed(i, &since), i >= 2 && i <= 4);
    }
    assert_int_equal(events(), 2);
    since = spw_migrate_access_log_snapshot(&f.log, 0);
    assert_false(is_accessed(2, &since));
    /* One that ends with a granule, and the first of its bytes. */
    spw_migrate_access_log_alloc(&f.log, f.base + 8 * GRANULE, 2 * GRANULE, 3);
    record(f.base + 8 * GRANULE);
    for (uint64_t i = 5; i < 12; i++) {
        assert_int_equal(is_accessed(i, &since), i == 8 || i == 9);
    }
    close_both();
}

/* An address without a block may mean the block that ended just before it. */
static void test_use_without_a_block(void **state)
{
    struct spw_access_log_snapshot since;

    open_both();
    since = spw_migrate_access_log_snapshot(&f.log, 0);
    record(f.base + 3 * GRANULE);
    for (uint64_t i = 0; i < 8; i++) {
        assert_int_equal(is_accessed(i, &since), i == 2 || i == 3);
    }
    since = spw_migrate_access_log_snapshot(&f.log, 0);
    record(f.base + 5 * GRANULE + 1);
    for (uint64_t i = 0; i < 8; i++) {
        assert_int_equal(is_accessed(i, &since), i == 5);
    }
    since = spw_migrate_access_log_snapshot(&f.log, 0);
    record(f.base);
    assert_true(is_accessed(0, &since));
    assert_false(is_accessed(1, &since));
    assert_int_equal(events(), 0);
    close_both();
}

/* A block that was entered without an event has all its granules marked. Frees are events, since
 * such a block is followed from then on. */
static void test_entered_block(void **state)
{
    struct spw_access_log_snapshot since;

    open_both();
    spw_migrate_access_log_enter(&f.log, f.base, 3 * GRANULE, 3, /* untracked */ false);
    assert_int_equal(events(), 0);
    assert_int_equal(f.log.predictor.blocks[block_at(f.base)].site, 3);
    assert_int_equal(f.log.predictor.blocks[block_at(f.base)].bytes, 3 * GRANULE);
    assert_int_equal(spw_migrate_predictor_age(&f.log.predictor, block_at(f.base)), 0);
    since = spw_migrate_access_log_snapshot(&f.log, 0);
    record(f.base);
    for (uint64_t i = 0; i < 8; i++) {
        assert_int_equal(is_accessed(i, &since), i < 3);
    }
    assert_int_equal(events(), 1);
    spw_migrate_access_log_free(&f.log, f.base);
    assert_int_equal(events(), 2);
    close_both();
}

/* Of an untracked block there are no events, and only what migrates of it is marked. Its number is
 * used again. */
static void test_untracked_block(void **state)
{
    struct spw_access_log_watch watch = {.count = 1};
    struct spw_access_log_snapshot since;
    uint32_t number;

    open_both();
    watch.places[0] = (struct spw_move_place){
        .block = f.base, .granule = f.base + 2 * GRANULE, .to = SPW_TIER_DEVICE};
    spw_migrate_access_log_enter(&f.log, f.base, 4 * GRANULE, 3, /* untracked */ true);
    number = block_at(f.base);
    assert_int_not_equal(number, 0);
    assert_int_equal(f.log.predictor.live_bytes, 0);
    assert_int_equal(f.log.predictor.blocks[number].site, 3);
    assert_int_equal(f.log.predictor.blocks[number].bytes, 4 * GRANULE);
    since = spw_migrate_access_log_snapshot(&f.log, 0);
    record(f.base);
    for (uint64_t i = 0; i < 8; i++) {
        assert_false(is_accessed(i, &since));
    }
    spw_migrate_access_log_watch(&f.log, &watch);
    record(f.base);
    for (uint64_t i = 0; i < 8; i++) {
        assert_int_equal(is_accessed(i, &since), i == 2);
    }
    spw_migrate_access_log_unwatch(&f.log, &watch);
    spw_migrate_access_log_free(&f.log, f.base);
    assert_int_equal(events(), 0);
    assert_int_equal(block_at(f.base), 0);
    assert_false(f.log.predictor.blocks[number].live);
    spw_migrate_access_log_alloc(&f.log, f.base, GRANULE, 3);
    assert_int_equal(block_at(f.base), number);
    assert_int_equal(f.log.predictor.live_bytes, GRANULE);
    close_both();
}

/* A use of an untracked block is one of all its granules that migrate, to either side, and of none
 * beside it. */
static void test_granules_of_an_untracked_block(void **state)
{
    static const uint64_t migrating[] = {0, 1, 3, 4};
    struct spw_access_log_watch watch = {.count = 4};
    struct spw_access_log_snapshot since;

    open_both();
    for (int i = 0; i < 4; i++) {
        watch.places[i].granule = f.base + migrating[i] * GRANULE;
        watch.places[i].to = i < 2 ? SPW_TIER_HOST : SPW_TIER_DEVICE;
    }
    spw_migrate_access_log_enter(&f.log, f.base + GRANULE, 3 * GRANULE, 3, /* untracked */ true);
    spw_migrate_access_log_watch(&f.log, &watch);
    since = spw_migrate_access_log_snapshot(&f.log, 0);
    record(f.base + 2 * GRANULE + 512);
    for (uint64_t i = 0; i < 8; i++) {
        assert_int_equal(is_accessed(i, &since), i == 1 || i == 3);
    }
    close_both();
}

/* A block that is entered ends those in whose place it is; the end of an untracked one is no event.
 */
static void test_entered_in_the_place_of_others(void **state)
{
    for (int untracked = 0; untracked < 2; untracked++) {
        open_both();
        for (uint64_t i = 0; i < 3; i++) {
            spw_migrate_access_log_alloc(&f.log, f.base + i * GRANULE, GRANULE, 3);
        }
        spw_migrate_access_log_enter(&f.log, f.base + GRANULE, 2 * GRANULE, 4, untracked);
        assert_int_equal(events(), 3 + 2);
        assert_int_equal(f.log.predictor.blocks[block_at(f.base)].site, 3);
        assert_int_equal(f.log.predictor.blocks[block_at(f.base + 2 * GRANULE)].site, 4);
        assert_int_equal(f.log.predictor.live_bytes, (untracked ? 1 : 3) * GRANULE);
        spw_migrate_access_log_enter(&f.log, f.base + 2 * GRANULE, GRANULE, 5, untracked);
        assert_int_equal(events(), 3 + 2 + (untracked ? 0 : 1));
        assert_int_equal(block_at(f.base + GRANULE), 0);
        assert_int_equal(f.log.predictor.blocks[block_at(f.base + 2 * GRANULE)].site, 5);
        close_both();
    }
}

/* A call that names memory without a known block may touch any part of a block there. */
static void test_unknown_block_is_incomplete(void **state)
{
    struct spw_access_log_snapshot now;

    open_both();
    spw_migrate_access_log_alloc(&f.log, f.base, 2 * GRANULE, 3);
    record(f.base + GRANULE);
    record(f.base + 2 * GRANULE); /* its end */
    record(f.base - 1);           /* elsewhere */
    now = spw_migrate_access_log_snapshot(&f.log, 3);
    assert_int_equal(now.complete, 3);
    record(f.base + 3 * GRANULE);
    now = spw_migrate_access_log_snapshot(&f.log, 4);
    assert_int_equal(now.complete, 3);
    assert_int_equal(now.clock, 4);
    close_both();
}

/* What is counted of which kind of call. */
static void test_counts(void **state)
{
    struct spw_access_log_snapshot now;
    uint64_t addresses[2];

    open_both();
    addresses[0] = f.base;
    addresses[1] = f.base + GRANULE;
    spw_migrate_access_log_alloc(&f.log, addresses[0], GRANULE, 3);
    spw_migrate_access_log_alloc(&f.log, addresses[1], GRANULE, 4);
    spw_migrate_access_log_record(&f.log, addresses, 2, /* kernel */ true);
    spw_migrate_access_log_record(&f.log, addresses, 2, /* kernel */ false);
    spw_migrate_access_log_record(&f.log, addresses, 0, /* kernel */ false);
    spw_migrate_access_log_record_partial(&f.log, addresses, 1);
    now = spw_migrate_access_log_snapshot(&f.log, 4);
    assert_int_equal(now.complete, 3);
    assert_int_equal(now.complete_non_kernel, 2);
    assert_int_equal(now.clock, 4);
    assert_int_equal(now.events, 2 + 2 + 2 + 1);
    close_both();
}

/* Marks reach the predictor. */
static void test_steps(void **state)
{
    open_both();
    spw_migrate_access_log_alloc(&f.log, f.base, GRANULE, 3);
    record(f.base);
    spw_migrate_access_log_mark_step(&f.log);
    assert_int_equal(f.log.predictor.mark_count, 1);
    close_both();
}

/* ---- migrations ---- */

/* A block is incoming while one of its granules goes to the device. */
static void test_incoming(void **state)
{
    struct spw_access_log_watch watch = {.count = 2};
    uint64_t addresses[3];

    open_both();
    for (uint64_t i = 0; i < 3; i++) {
        addresses[i] = f.base + (2 * i + 1) * GRANULE;
        spw_migrate_access_log_alloc(&f.log, addresses[i], 2 * GRANULE, 3);
    }
    watch.places[0] = (struct spw_move_place){.granule = f.base + 4 * GRANULE};
    watch.places[0].to = SPW_TIER_DEVICE;
    watch.places[1] = (struct spw_move_place){.granule = f.base + 2 * GRANULE};
    watch.places[1].to = SPW_TIER_HOST;
    spw_migrate_access_log_watch(&f.log, &watch);
    assert_false(spw_migrate_access_log_is_incoming(&f.log, addresses, 1));
    assert_true(spw_migrate_access_log_is_incoming(&f.log, addresses + 1, 1));
    assert_true(spw_migrate_access_log_is_incoming(&f.log, addresses, 3));
    assert_false(spw_migrate_access_log_is_incoming(&f.log, addresses + 2, 1));
    addresses[0] = f.base - 1;
    addresses[2] = f.base; /* no block */
    assert_false(spw_migrate_access_log_is_incoming(&f.log, addresses, 1));
    assert_false(spw_migrate_access_log_is_incoming(&f.log, addresses + 2, 1));
    spw_migrate_access_log_unwatch(&f.log, &watch);
    assert_false(spw_migrate_access_log_is_incoming(&f.log, addresses, 3));
    close_both();
}

/* Dirty once an argument names a watched granule, or a kernel or an unknown call was submitted;
 * clean while nothing but known copies were. */
static void test_dirty(void **state)
{
    struct spw_access_log_watch watch = {.count = 2};
    uint64_t other;

    open_both();
    other = f.base + 9 * GRANULE;
    watch.places[0].granule = f.base + GRANULE;
    watch.places[1].granule = f.base + 3 * GRANULE;
    spw_migrate_access_log_alloc(&f.log, other, GRANULE, 3);
    spw_migrate_access_log_alloc(&f.log, watch.places[1].granule, GRANULE, 3);
    record(watch.places[1].granule);
    watch.since = spw_migrate_access_log_snapshot(&f.log, 1);
    assert_false(spw_migrate_access_log_is_dirty(&f.log, &watch, 1));
    assert_true(spw_migrate_access_log_is_dirty(&f.log, &watch, 2)); /* one is not known */
    spw_migrate_access_log_record(&f.log, &other, 1, /* kernel */ false);
    assert_false(spw_migrate_access_log_is_dirty(&f.log, &watch, 2));
    spw_migrate_access_log_record(&f.log, &watch.places[1].granule, 1, /* kernel */ false);
    assert_true(spw_migrate_access_log_is_dirty(&f.log, &watch, 3));
    watch.count = 1;
    assert_false(spw_migrate_access_log_is_dirty(&f.log, &watch, 3));
    record(other); /* a kernel */
    assert_true(spw_migrate_access_log_is_dirty(&f.log, &watch, 4));
    close_both();
}

/* Unmapped granules are mapped again by a record that names their block, and by one that may mean
 * any memory: a call without all its addresses, or with an address of no known block. */
static void test_detached(void **state)
{
    enum { NAMES_IT, NAMES_ANOTHER, PARTIAL, UNKNOWN_BLOCK };

    for (int kind = NAMES_IT; kind <= UNKNOWN_BLOCK; kind++) {
        struct spw_access_log_watch watch = {.count = 2};
        struct spw_move_request request = {.places = watch.places, .count = 2};
        struct spw_move *move;
        uint64_t block, other;
        bool moves;

        open_pool();
        f.pool.vm.immediate = true;
        assert_int_equal(spw_pool_open_host(f.pool.pool, 8 * GRANULE, &moves), SPW_OK);
        block = pool_alloc(&f.pool, 2 * GRANULE, &stream_a);
        other = pool_alloc(&f.pool, 2 * GRANULE, &stream_a);
        open_log();
        for (size_t i = 0; i < 2; i++) {
            watch.places[i] = (struct spw_move_place){block, block + i * GRANULE, SPW_TIER_HOST};
        }
        record(block);
        watch.since = spw_migrate_access_log_snapshot(&f.log, 1);
        assert_int_equal(spw_pool_move_begin(f.pool.pool, &request, &move), SPW_OK);
        assert_int_equal(spw_migrate_access_log_detach(&f.log, &watch, 2, move),
                         0); /* one is not known */
        assert_true(fake_vm_usable(&f.pool.vm, block, 2 * GRANULE));
        assert_int_equal(spw_migrate_access_log_detach(&f.log, &watch, 1, move), 2);
        assert_false(fake_vm_usable(&f.pool.vm, block, GRANULE));
        if (kind == PARTIAL) {
            spw_migrate_access_log_record_partial(&f.log, NULL, 0);
        } else {
            record(kind == NAMES_IT        ? block + GRANULE
                   : kind == NAMES_ANOTHER ? other
                                           : other + 16 * GRANULE);
        }
        assert_int_equal(fake_vm_usable(&f.pool.vm, block, 2 * GRANULE), kind != NAMES_ANOTHER);
        assert_int_equal(spw_pool_move_end(f.pool.pool, move), SPW_OK);
        (void)spw_pool_attach_all(f.pool.pool);
        close_both();
    }
}

/* ---- plans ---- */

/* Blocks of two granules with sites of their own, used in turn after each step's temporary block.
 */
enum { BLOCKS = 28, STEP = BLOCKS + 2 };

static uint64_t blocks[BLOCKS];

static void open_program(uint64_t bytes)
{
    open_pool();
    for (uint32_t i = 0; i < BLOCKS; i++) {
        blocks[i] = take(bytes, 10 + i);
    }
    open_log();
}

static void run(int first, int end)
{
    for (int i = first; i < end; i++) {
        record(blocks[i]);
    }
}

/* One more block lives from the beginning of each step until after the use of `until`. */
static void step(int until, uint64_t bytes)
{
    uint64_t temporary = take(bytes, 5);

    spw_migrate_access_log_alloc(&f.log, temporary, bytes, 5);
    run(0, until + 1);
    spw_migrate_access_log_free(&f.log, temporary);
    pool_free(&f.pool, temporary, &stream_a);
    run(until + 1, BLOCKS);
}

static struct spw_access_log_plan plan(struct spw_access_log_goal goal)
{
    struct spw_access_log_plan planned;

    memset(&planned, 0x55, sizeof(planned));
    spw_migrate_access_log_plan(&f.log, &goal, &planned);
    return planned;
}

/* Moves blocks to the host. */
static void spill(int first, int end)
{
    struct spw_move_place places[8];
    struct spw_move_request request = {.places = places};
    struct spw_move *move;
    uint64_t bytes;

    for (int i = first; i < end; i++) {
        for (uint64_t g = 0; g < 2; g++) {
            places[request.count++] = (struct spw_move_place){
                .block = blocks[i], .granule = blocks[i] + g * GRANULE, .to = SPW_TIER_HOST};
        }
    }
    assert_int_equal(spw_pool_move_begin(f.pool.pool, &request, &move), SPW_OK);
    assert_int_equal(spw_pool_move_copy(f.pool.pool, move, true), SPW_OK);
    assert_int_equal(spw_pool_move_commit(f.pool.pool, move, &bytes), SPW_OK);
    assert_int_equal(spw_pool_move_end(f.pool.pool, move), SPW_OK);
    assert_int_equal(bytes, request.count * GRANULE);
}

/* Without predictions: what was not used for long, the oldest first, and only as old as allowed. */
static void test_plan_without_predictions(void **state)
{
    struct spw_access_log_plan planned;

    open_program(2 * GRANULE);
    run(0, BLOCKS);
    run(5, BLOCKS);
    planned = plan(
        (struct spw_access_log_goal){.bytes = 3 * GRANULE, .most = 10, .least_age = BLOCKS - 5});
    assert_int_equal(planned.count, 3);
    assert_int_equal(planned.granules, 3);
    assert_int_equal(planned.at, 0);
    assert_int_equal(planned.hot, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(planned.places[i].to, SPW_TIER_HOST);
        assert_int_equal(planned.places[i].block, blocks[i / 2]);
        assert_int_equal(planned.places[i].granule, blocks[i / 2] + i % 2 * GRANULE);
    }
    planned = plan(
        (struct spw_access_log_goal){.bytes = 30 * GRANULE, .most = 40, .least_age = BLOCKS - 5});
    assert_int_equal(planned.count, 12); /* the sixth block is just old enough */
    planned = plan(
        (struct spw_access_log_goal){.bytes = 30 * GRANULE, .most = 7, .least_age = BLOCKS - 5});
    assert_int_equal(planned.count, 7);
    planned = plan((struct spw_access_log_goal){.most = 7}); /* nothing is known to be needed */
    assert_int_equal(planned.count, 0);
    close_both();
}

/* A block that ends with a granule does not make the next one young. */
static void test_plan_beside_a_young_block(void **state)
{
    struct spw_access_log_plan planned;

    open_program(2 * GRANULE);
    run(0, BLOCKS);
    run(0, 1);
    planned =
        plan((struct spw_access_log_goal){.bytes = 2 * GRANULE, .most = 10, .least_age = BLOCKS});
    assert_int_equal(planned.count, 2);
    assert_int_equal(planned.places[0].block, blocks[1]);
    assert_int_equal(planned.places[1].block, blocks[1]);
    close_both();
}

/* A granule on which two blocks lie is as young as the younger. */
static void test_plan_with_shared_granules(void **state)
{
    struct spw_access_log_plan planned;

    open_program(3 * GRANULE / 2);
    run(0, BLOCKS);
    run(1, BLOCKS);
    planned = plan((struct spw_access_log_goal){.bytes = GRANULE, .most = 10, .least_age = BLOCKS});
    assert_int_equal(planned.count, 1);
    assert_int_equal(planned.places[0].granule, blocks[0]);
    planned =
        plan((struct spw_access_log_goal){.bytes = 2 * GRANULE, .most = 10, .least_age = BLOCKS});
    assert_int_equal(planned.count, 1); /* the second granule is the next block's as well */
    close_both();
}

/* An untracked block makes no granule young, and gives no reason to move one. */
static void test_plan_with_an_untracked_block(void **state)
{
    struct spw_access_log_plan planned;

    open_program(3 * GRANULE / 2);
    run(0, BLOCKS);
    run(1, BLOCKS);
    spw_migrate_access_log_enter(&f.log, blocks[1], 3 * GRANULE / 2, 11, /* untracked */ true);
    planned =
        plan((struct spw_access_log_goal){.bytes = 4 * GRANULE, .most = 10, .least_age = BLOCKS});
    assert_int_equal(planned.count, 2); /* not the third, where nothing else lies */
    assert_int_equal(planned.places[0].granule, blocks[0]);
    assert_int_equal(planned.places[1].granule, blocks[0] + GRANULE);
    close_both();
}

/* Fixed blocks and blocks of priority. */
static void test_plan_and_attributes(void **state)
{
    const struct spw_block_attributes fixed = {.fix = SPW_FIXED_BY_PROGRAM};
    const struct spw_block_attributes first = {.prioritize = true, .priority = 1};
    struct spw_access_log_plan planned;

    open_program(2 * GRANULE);
    assert_int_equal(spw_pool_set_attributes(f.pool.pool, blocks[0], 1, &fixed), 1);
    assert_int_equal(spw_pool_set_attributes(f.pool.pool, blocks[1], 1, &first), 1);
    run(0, BLOCKS);
    planned = plan((struct spw_access_log_goal){.bytes = 2 * GRANULE, .most = 10});
    assert_int_equal(planned.count, 2);
    assert_int_equal(planned.places[0].block, blocks[2]);
    assert_int_equal(planned.places[1].block, blocks[2]);
    close_both();
}

/* With predictions: the blocks on the host that are used next come, in time, as far as there is
 * room; what is kept free is no room. */
static void test_plan_ahead(void **state)
{
    uint64_t now, period;
    struct spw_access_log_plan planned;

    open_program(2 * GRANULE);
    spill(10, 14);
    for (int i = 0; i < 5; i++) {
        step(3, 2 * GRANULE);
    }
    f.log.predictor.misses = 3;
    assert_true(spw_migrate_access_log_find_period(&f.log, &now, &period));
    assert_int_equal(period, STEP);
    assert_int_equal(now, 5 * STEP);
    assert_true(spw_counter_get(&f.pool.counters.uses_foreseen) > STEP);
    assert_int_equal(spw_counter_get(&f.pool.counters.uses_foreseen), f.log.predictor.hits);
    assert_int_equal(spw_counter_get(&f.pool.counters.uses_unforeseen), 3);
    planned = plan((struct spw_access_log_goal){.most = 6});
    assert_int_equal(planned.count, 6);
    assert_int_equal(planned.at, 12); /* an allocation, four uses, a free, and six uses */
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(planned.places[i].to, SPW_TIER_DEVICE);
        assert_int_equal(planned.places[i].block, blocks[10 + i / 2]);
    }
    planned = plan((struct spw_access_log_goal){.most = 6, .kept = 9 * GRANULE});
    assert_int_equal(planned.count, 5); /* the temporary block needs two of the seven */
    close_both();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_nothing_is_leaked),
        cmocka_unit_test(test_blocks_come_and_go),
        cmocka_unit_test(test_other_addresses),
        cmocka_unit_test(test_frees_that_were_not_seen),
        cmocka_unit_test(test_too_many_blocks),
        cmocka_unit_test(test_granules_of_a_use),
        cmocka_unit_test(test_use_without_a_block),
        cmocka_unit_test(test_entered_block),
        cmocka_unit_test(test_untracked_block),
        cmocka_unit_test(test_granules_of_an_untracked_block),
        cmocka_unit_test(test_entered_in_the_place_of_others),
        cmocka_unit_test(test_unknown_block_is_incomplete),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_incoming),
        cmocka_unit_test(test_dirty),
        cmocka_unit_test(test_detached),
        cmocka_unit_test(test_plan_without_predictions),
        cmocka_unit_test(test_plan_beside_a_young_block),
        cmocka_unit_test(test_plan_with_shared_granules),
        cmocka_unit_test(test_plan_with_an_untracked_block),
        cmocka_unit_test(test_plan_and_attributes),
        cmocka_unit_test(test_plan_ahead),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
