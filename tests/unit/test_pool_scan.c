/* The pool's answers about its granules, about the room on the device, and about its blocks. */
#include "pool_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "pool/pool.h"

enum { DEVICE = 8, HOST = 8, MOST = 64, PARTS = 8, ARENA = 64 };

static struct pool_fixture f;
static struct spw_granule_info infos[MOST];
static uint64_t base;
static int64_t room;

static void open_tiers(void)
{
    bool moves = false;

    pool_open_small(&f, ARENA, DEVICE, 0);
    assert_int_equal(spw_pool_open_host(f.pool, (uint64_t)HOST * GRANULE, &moves), SPW_OK);
    f.vm.immediate = true;
}

static size_t scan(size_t most)
{
    memset(infos, 0xff, sizeof(infos));
    base = 0;
    return spw_pool_scan_granules(f.pool, infos, most, &base, &room);
}

static void prioritize(uint64_t block, int32_t priority)
{
    const struct spw_block_attributes change = {.prioritize = true, .priority = priority};

    assert_int_equal(spw_pool_set_attributes(f.pool, block, 1, &change), 1);
}

static void fix(uint64_t block, bool fixed)
{
    const struct spw_block_attributes change = {.fix = fixed ? SPW_FIXED_BY_PROGRAM : 0,
                                                .unfix = fixed ? 0 : SPW_FIXED_BY_PROGRAM};

    assert_int_equal(spw_pool_set_attributes(f.pool, block, 1, &change), 1);
}

/* Begins a move of one granule and its copy. */
static void begin_move(uint64_t block, uint64_t granule, enum spw_tier to)
{
    const struct spw_move_place place = {block, granule, to};
    const struct spw_move_request request = {.places = &place, .count = 1};

    assert_int_equal(spw_pool_move_begin(f.pool, &request, &f.move), SPW_OK);
    assert_int_equal(spw_pool_move_copy(f.pool, f.move, true), SPW_OK);
    assert_int_equal(spw_pool_move_poll(f.pool, f.move), SPW_OK);
}

static void finish_move(void)
{
    uint64_t bytes;

    assert_int_equal(spw_pool_move_commit(f.pool, f.move, &bytes), SPW_OK);
    assert_int_equal(spw_pool_move_end(f.pool, f.move), SPW_OK);
    pool_check(&f);
}

/* ---- granules ---- */

/* Two blocks, which share the second of three granules, and a free one behind them. */
static void test_granules(void **state)
{
    uint64_t first, second, free;

    open_tiers();
    first = pool_alloc(&f, GRANULE / 2 * 3, &stream_a);
    second = pool_alloc(&f, GRANULE / 2 * 3, &stream_a);
    free = pool_alloc(&f, GRANULE, &stream_a);
    pool_free(&f, free, &stream_a);
    assert_int_equal(scan(MOST), 4);
    assert_int_equal(base, first);
    assert_int_equal(infos[0].block, first);
    assert_int_equal(infos[1].block, first);
    assert_int_equal(infos[2].block, second);
    assert_int_equal(infos[3].block, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(infos[i].priority, 0);
        assert_int_equal(infos[i].tier, SPW_TIER_DEVICE);
        assert_int_equal(infos[i].part, 0);
        assert_int_equal(infos[i].count, 1);
        assert_true(infos[i].movable);
    }
    pool_close(&f);
}

/* Of a shared granule the highest priority counts, and it moves only if all its blocks may. */
static void test_shared_granule(void **state)
{
    uint64_t blocks[2];

    open_tiers();
    blocks[0] = pool_alloc(&f, GRANULE / 2 * 3, &stream_a);
    blocks[1] = pool_alloc(&f, GRANULE / 2 * 3, &stream_a);
    prioritize(blocks[0], 5);
    prioritize(blocks[1], 3);
    (void)scan(MOST);
    assert_int_equal(infos[0].priority, 5);
    assert_int_equal(infos[1].priority, 5);
    assert_int_equal(infos[2].priority, 3);
    prioritize(blocks[0], -1);
    (void)scan(MOST);
    assert_int_equal(infos[0].priority, -1);
    assert_int_equal(infos[1].priority, 3);
    for (size_t i = 0; i < 2; i++) {
        fix(blocks[i], true);
        (void)scan(MOST);
        assert_int_equal(infos[0].movable, i != 0);
        assert_false(infos[1].movable);
        assert_int_equal(infos[2].movable, i != 1);
        fix(blocks[i], false);
    }
    pool_close(&f);
}

/* No more is written than there is room for. */
static void test_most(void **state)
{
    uint64_t block;

    open_tiers();
    block = pool_alloc(&f, 4 * GRANULE, &stream_a);
    assert_int_equal(scan(2), 2);
    assert_int_equal(infos[1].block, block);
    assert_int_equal(infos[2].block, UINT64_MAX);
    assert_int_equal(scan(0), 0);
    assert_int_equal(infos[0].block, UINT64_MAX);
    pool_close(&f);
}

/* While a granule is being moved it is shown at its target, unless it is left out. */
static void test_moves(void **state)
{
    uint64_t block;

    open_tiers();
    block = pool_alloc(&f, 3 * GRANULE, &stream_a);
    begin_move(block, block + GRANULE, SPW_TIER_HOST);
    (void)scan(MOST);
    assert_int_equal(infos[0].tier, SPW_TIER_DEVICE);
    assert_int_equal(infos[1].tier, SPW_TIER_HOST);
    assert_int_equal(infos[2].tier, SPW_TIER_DEVICE);
    assert_true(infos[0].movable);
    assert_false(infos[1].movable);
    assert_true(infos[2].movable);
    assert_int_equal(scan(1), 1); /* not far enough to see it */
    assert_int_equal(infos[1].block, UINT64_MAX);
    spw_pool_move_leave_out(f.pool, f.move, block + GRANULE);
    (void)scan(MOST);
    assert_int_equal(infos[1].tier, SPW_TIER_DEVICE);
    assert_int_equal(spw_pool_move_end(f.pool, f.move), SPW_OK);
    begin_move(block, block + GRANULE, SPW_TIER_HOST);
    finish_move();
    (void)scan(MOST);
    assert_int_equal(infos[1].tier, SPW_TIER_HOST);
    assert_true(infos[1].movable);
    pool_close(&f);
}

/* The part that a placement put on the host stays there; the rest of the block may go there. A
 * block without memory does not move. */
static void test_placed_and_lazy(void **state)
{
    static _Atomic uint64_t to_commit;
    struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .host_permille = 500};
    const struct spw_request request = {
        .bytes = 2 * GRANULE, .stream = &stream_a, .placement = &placement};
    struct spw_result result;

    pool_open_as(&f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                               .arena_bytes = (uint64_t)ARENA * GRANULE,
                                               .limit_bytes = (uint64_t)DEVICE * GRANULE,
                                               .host_limit_bytes = (uint64_t)HOST * GRANULE,
                                               .to_commit = &to_commit});
    assert_int_equal(spw_pool_alloc(f.pool, &request, &result), SPW_OK);
    placement = (struct spw_pool_placement){.limit_bytes = UINT64_MAX, .lazy = true};
    assert_int_equal(spw_pool_alloc(f.pool, &request, &result), SPW_OK);
    assert_int_equal(scan(MOST), 4);
    assert_int_not_equal(infos[0].tier, infos[1].tier);
    assert_int_equal(infos[0].movable, infos[0].tier == SPW_TIER_DEVICE);
    assert_int_equal(infos[1].movable, infos[1].tier == SPW_TIER_DEVICE);
    assert_int_equal(infos[2].block, result.address);
    assert_false(infos[2].movable);
    pool_free(&f, result.address, &stream_a);
    pool_close(&f);
}

/* The first granule of a chunk tells about all of them. */
static void test_chunks(void **state)
{
    enum { LARGEST = 4, BASE = 512 * LARGEST };
    struct spw_granule_info *all = calloc(BASE + LARGEST, sizeof(*all));
    const struct spw_granule_info *head = &all[BASE];
    uint64_t whole, blocks[2];

    pool_open_as(&f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                               .chunk_bytes = (uint64_t)LARGEST * GRANULE,
                                               .arena_bytes = 8ull * BASE * GRANULE,
                                               .limit_bytes = 4ull * BASE * GRANULE});
    (void)pool_alloc(&f, (uint64_t)BASE * GRANULE, &stream_b);
    whole = pool_alloc(&f, (uint64_t)LARGEST * GRANULE, &stream_a);
    pool_free(&f, whole, &stream_a);
    blocks[0] = pool_alloc(&f, GRANULE, &stream_a);
    blocks[1] = pool_alloc(&f, GRANULE, &stream_a);
    assert_int_equal(blocks[1], whole + GRANULE);
    prioritize(blocks[0], 2);
    prioritize(blocks[1], 7);
    assert_int_equal(spw_pool_scan_granules(f.pool, all, BASE + LARGEST, &base, &room),
                     BASE + LARGEST);
    for (size_t i = 0; i < LARGEST; i++) {
        assert_int_equal(head[i].part, i);
        assert_int_equal(head[i].count, LARGEST);
    }
    assert_int_equal(head->block, blocks[0]);
    assert_int_equal(head->priority, 7);
    assert_true(head->movable);
    prioritize(blocks[1], 1);
    fix(blocks[1], true);
    (void)spw_pool_scan_granules(f.pool, all, BASE + LARGEST, &base, &room);
    assert_int_equal(head->priority, 2);
    assert_false(head->movable);
    /* The block in its middle stands for the chunk if it is the only one. */
    pool_free(&f, blocks[0], &stream_a);
    (void)spw_pool_scan_granules(f.pool, all, BASE + LARGEST, &base, &room);
    assert_int_equal(head->block, blocks[1]);
    assert_int_equal(head->priority, 1);
    assert_false(head->movable);
    /* Only whole chunks are room that may be used at other addresses. */
    assert_int_equal(spw_pool_room(f.pool), room - (LARGEST - 1) * GRANULE);
    fix(blocks[1], false);
    (void)spw_pool_scan_granules(f.pool, all, BASE + LARGEST, &base, &room);
    assert_true(head->movable);
    pool_close(&f);
    free(all);
}

/* The numbered heaps lie behind the heap of large blocks, and are shown as far as they are used. */
static void test_numbered_heaps(void **state)
{
    enum { NUMBERED = 2, PART = 7 /* a tenth of the arena, in whole granules */ };
    struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .heap = 1};
    const struct spw_request request = {
        .bytes = 2 * GRANULE, .stream = &stream_a, .placement = &placement};
    struct spw_result result;

    pool_open_as(&f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                               .arena_bytes = (uint64_t)ARENA * GRANULE,
                                               .limit_bytes = (uint64_t)DEVICE * GRANULE,
                                               .numbered_heaps = NUMBERED});
    assert_int_equal(scan(MOST), 0);
    assert_int_equal(base, f.vm.base + PART * GRANULE);
    assert_int_equal(spw_pool_alloc(f.pool, &request, &result), SPW_OK);
    assert_int_equal(scan(MOST), ARENA - 3 * PART + 2);
    assert_int_equal(infos[ARENA - 3 * PART].block, result.address);
    placement.heap = 2;
    assert_int_equal(spw_pool_alloc(f.pool, &request, &result), SPW_OK);
    assert_int_equal(scan(MOST), ARENA - 2 * PART + 2);
    assert_int_equal(infos[ARENA - 2 * PART + 1].block, result.address);
    pool_close(&f);
}

/* ---- room ---- */

static void expect_room(int64_t granules)
{
    assert_int_equal(spw_pool_room(f.pool), granules * GRANULE);
    (void)scan(MOST);
    assert_int_equal(room, granules * GRANULE);
}

/* Room is what the limit leaves besides blocks; those of small size count by their heap. */
static void test_room(void **state)
{
    uint64_t first, second;

    open_tiers();
    expect_room(DEVICE);
    first = pool_alloc(&f, GRANULE / 2 * 3, &stream_a);
    expect_room(DEVICE - 2);
    second = pool_alloc(&f, GRANULE / 2 * 3, &stream_a);
    expect_room(DEVICE - 3);
    (void)pool_alloc(&f, 512, &stream_a);
    expect_room(DEVICE - 4);
    assert_int_equal(spw_pool_charge(f.pool, 2 * GRANULE, 0, false), SPW_OK);
    expect_room(DEVICE - 6);
    pool_free(&f, second, &stream_a);
    expect_room(DEVICE - 5);
    begin_move(first, first, SPW_TIER_HOST);
    expect_room(DEVICE - 4);
    finish_move();
    expect_room(DEVICE - 4);
    begin_move(first, first, SPW_TIER_DEVICE);
    expect_room(DEVICE - 5);
    spw_pool_move_leave_out(f.pool, f.move, first);
    expect_room(DEVICE - 4);
    assert_int_equal(spw_pool_move_end(f.pool, f.move), SPW_OK);
    begin_move(first, first, SPW_TIER_DEVICE);
    spw_pool_move_leave(f.pool, f.move);
    expect_room(DEVICE - 4);
    spw_pool_discharge(f.pool, 2 * GRANULE, 0);
    pool_close(&f);
}

/* ---- blocks ---- */

static struct {
    uint64_t address, bytes, age;
    uint32_t site;
} seen[MOST];
static size_t seen_count;

static void see(void *cookie, uint64_t address, uint64_t bytes, uint32_t site, uint64_t age)
{
    assert_ptr_equal(cookie, &f);
    seen[seen_count].address = address;
    seen[seen_count].bytes = bytes;
    seen[seen_count].site = site;
    seen[seen_count++].age = age;
}

/* Every large block is told, with what was freed since its last use. */
static void test_each_large(void **state)
{
    const struct spw_request request = {.bytes = GRANULE + 1, .stream = &stream_a, .site = 17};
    struct spw_result result;
    uint64_t other;

    open_tiers();
    (void)pool_alloc(&f, 512, &stream_a);
    assert_int_equal(spw_pool_alloc(f.pool, &request, &result), SPW_OK);
    for (int i = 0; i < 3; i++) {
        pool_free(&f, pool_alloc(&f, GRANULE, &stream_a), &stream_a);
    }
    other = pool_alloc(&f, 2 * GRANULE, &stream_a);
    seen_count = 0;
    spw_pool_each_large(f.pool, see, &f);
    assert_int_equal(seen_count, 2);
    assert_int_equal(seen[0].address, result.address);
    assert_int_equal(seen[0].bytes, GRANULE + 512);
    assert_int_equal(seen[0].site, 17);
    assert_int_equal(seen[0].age, 3);
    assert_int_equal(seen[1].address, other);
    assert_int_equal(seen[1].age, 0);
    pool_close(&f);
}

static void test_large_range(void **state)
{
    uint64_t address, bytes, granule_bytes;

    open_tiers();
    spw_pool_large_range(f.pool, &address, &bytes, &granule_bytes);
    assert_int_equal(address, f.vm.base + ARENA / PARTS * GRANULE);
    assert_int_equal(bytes, (ARENA - ARENA / PARTS) * GRANULE);
    assert_int_equal(granule_bytes, GRANULE);
    pool_close(&f);
}

/* Memory is in one tier up to where it changes, or to the end of what was asked for. */
static void test_run(void **state)
{
    uint64_t block;

    open_tiers();
    block = pool_alloc(&f, 4 * GRANULE, &stream_a);
    assert_int_equal(spw_pool_run(f.pool, block, 4 * GRANULE), 4 * GRANULE);
    begin_move(block, block + 2 * GRANULE, SPW_TIER_HOST);
    finish_move();
    assert_int_equal(spw_pool_run(f.pool, block, 4 * GRANULE), 2 * GRANULE);
    assert_int_equal(spw_pool_run(f.pool, block + 512, 4 * GRANULE), 2 * GRANULE - 512);
    assert_int_equal(spw_pool_run(f.pool, block + 512, GRANULE), GRANULE);
    assert_int_equal(spw_pool_run(f.pool, block + 512, 100), 100);
    assert_int_equal(spw_pool_run(f.pool, block + 2 * GRANULE, 2 * GRANULE), GRANULE);
    assert_int_equal(spw_pool_run(f.pool, block + 3 * GRANULE - 1, 2), 1);
    assert_int_equal(spw_pool_run(f.pool, f.vm.base + (ARENA - 1) * GRANULE, 2 * GRANULE), GRANULE);
    pool_close(&f);
}

static void add_up(uint64_t address, uint64_t bytes, void *context)
{
    uint64_t *sums = context;

    sums[0] += address;
    sums[1] += bytes;
}

/* Free memory is where a block was; addresses without memory are not. */
static void test_each_free(void **state)
{
    uint64_t first, second, sums[2] = {0, 0};

    open_tiers();
    spw_pool_each_free(f.pool, add_up, sums);
    assert_int_equal(sums[1], 0);
    first = pool_alloc(&f, 4 * GRANULE, &stream_a);
    second = pool_alloc(&f, 2 * GRANULE, &stream_a);
    pool_free(&f, first, &stream_a);
    spw_pool_each_free(f.pool, add_up, sums);
    assert_int_equal(sums[0], first);
    assert_int_equal(sums[1], 4 * GRANULE);
    pool_free(&f, second, &stream_a);
    assert_int_equal(spw_pool_trim(f.pool, 0), 6 * GRANULE);
    sums[1] = 0;
    spw_pool_each_free(f.pool, add_up, sums);
    assert_int_equal(sums[1], 0);
    pool_close(&f);
}

/* ---- what lies on the host ---- */

static struct spw_move_place places[SPW_MOVE_GRANULES];
static uint64_t listed_bytes;

static size_t find_on_host(uint64_t block)
{
    listed_bytes = 4711;
    return spw_pool_find_on_host(f.pool, &block, 1, places, &listed_bytes);
}

/* Only the granules of the block that are on the host. */
static void test_on_host(void **state)
{
    uint64_t block, other;

    open_tiers();
    block = pool_alloc(&f, 3 * GRANULE, &stream_a);
    other = pool_alloc(&f, GRANULE, &stream_a);
    assert_int_equal(find_on_host(block), 0);
    assert_int_equal(listed_bytes, 0);
    begin_move(block, block + GRANULE, SPW_TIER_HOST);
    assert_int_equal(find_on_host(block), 0); /* it is moving */
    finish_move();
    begin_move(other, other, SPW_TIER_HOST);
    finish_move();
    assert_int_equal(find_on_host(block), 1);
    assert_int_equal(listed_bytes, GRANULE);
    assert_int_equal(places[0].block, block);
    assert_int_equal(places[0].granule, block + GRANULE);
    assert_int_equal(places[0].to, SPW_TIER_DEVICE);
    fix(block, true);
    assert_int_equal(find_on_host(block), 0);
    fix(block, false);
    assert_int_equal(find_on_host(block + GRANULE), 0); /* no block begins there */
    assert_int_equal(find_on_host(4711), 0);
    pool_free(&f, block, &stream_a);
    assert_int_equal(find_on_host(block), 0);
    pool_close(&f);
}

/* A block that was placed on the host stays there. */
static void test_placed_on_host(void **state)
{
    const struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .host_permille = 1000};
    const struct spw_request request = {
        .bytes = 2 * GRANULE, .stream = &stream_a, .placement = &placement};
    struct spw_result result = {0};

    open_tiers();
    assert_int_equal(spw_pool_alloc(f.pool, &request, &result), SPW_OK);
    assert_int_equal(fake_vm_on_host(&f.vm, result.address, 2 * GRANULE), 2);
    assert_int_equal(find_on_host(result.address), 0);
    pool_close(&f);
}

/* Nothing moves granules of small blocks. */
static void test_small_on_host(void **state)
{
    uint64_t small = 0, host_bytes = 0;

    open_tiers();
    (void)pool_alloc(&f, DEVICE * (uint64_t)GRANULE, &stream_a);
    assert_int_equal(pool_try_anywhere(&f, 512, &stream_a, &small, &host_bytes), SPW_OK);
    assert_int_equal(host_bytes, 512);
    assert_int_equal(find_on_host(small), 0);
    pool_close(&f);
}

/* No more than one move holds. */
static void test_much_on_host(void **state)
{
    enum { GRANULES = SPW_MOVE_GRANULES + 8 };
    const struct spw_move_request all = {.to = SPW_TIER_HOST,
                                         .bytes = GRANULES * (uint64_t)GRANULE};
    uint64_t blocks[2];
    bool moves = false;

    pool_open_small(&f, 8 * GRANULES, GRANULES, 0);
    assert_int_equal(spw_pool_open_host(f.pool, 2 * GRANULES * (uint64_t)GRANULE, &moves), SPW_OK);
    f.vm.immediate = true;
    blocks[0] = pool_alloc(&f, 8 * GRANULE, &stream_a);
    blocks[1] = pool_alloc(&f, (GRANULES - 8) * (uint64_t)GRANULE, &stream_a);
    while (spw_pool_move_begin(f.pool, &all, &f.move) == SPW_OK) {
        assert_int_equal(spw_pool_move_copy(f.pool, f.move, true), SPW_OK);
        assert_int_equal(spw_pool_move_poll(f.pool, f.move), SPW_OK);
        finish_move();
    }
    assert_int_equal(fake_vm_on_host(&f.vm, blocks[1], (GRANULES - 8) * (uint64_t)GRANULE),
                     GRANULES - 8);
    assert_true(spw_pool_find_on_host(f.pool, blocks, 2, places, &listed_bytes) > 1);
    assert_int_equal(listed_bytes, SPW_MOVE_GRANULES * (uint64_t)GRANULE);
    assert_int_equal(places[0].block, blocks[0]);
    pool_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_host),       cmocka_unit_test(test_placed_on_host),
        cmocka_unit_test(test_small_on_host), cmocka_unit_test(test_much_on_host),
        cmocka_unit_test(test_granules),      cmocka_unit_test(test_shared_granule),
        cmocka_unit_test(test_most),          cmocka_unit_test(test_moves),
        cmocka_unit_test(test_chunks),        cmocka_unit_test(test_placed_and_lazy),
        cmocka_unit_test(test_room),          cmocka_unit_test(test_numbered_heaps),
        cmocka_unit_test(test_each_large),    cmocka_unit_test(test_large_range),
        cmocka_unit_test(test_run),           cmocka_unit_test(test_each_free),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
