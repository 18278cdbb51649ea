/* Moves between device and host: content stays, nothing leaks, whatever fails. */
#include "pool/pool.h"
#include "pool_fixture.h"

enum { DEVICE = 8, HOST = 16 };

static void open_tiers(struct pool_fixture *f)
{
    bool moves = false;

    pool_open_small(f, 256, DEVICE, 0);
    assert_int_equal(spw_pool_open_host(f->pool, (uint64_t)HOST * GRANULE, &moves), SPW_OK);
    assert_true(moves);
    f->vm.immediate = true;
}

static enum spw_err begin(struct pool_fixture *f, enum spw_tier to, size_t granules)
{
    const struct spw_move_request request = {.to = to, .bytes = granules * GRANULE};
    enum spw_err err = spw_pool_move_begin(f->pool, &request, &f->move);

    pool_check(f);
    return err;
}

/* Makes a whole move. Returns the bytes moved. */
static uint64_t move(struct pool_fixture *f, enum spw_tier to, size_t granules)
{
    uint64_t bytes = 0;

    if (begin(f, to, granules) != SPW_OK) {
        return 0;
    }
    if (spw_pool_move_copy(f->pool, f->move, true) == SPW_OK &&
        spw_pool_move_poll(f->pool, f->move) == SPW_OK &&
        spw_pool_move_drain(f->pool, f->move) == SPW_OK) {
        (void)spw_pool_move_commit(f->pool, f->move, &bytes);
        pool_check(f);
    }
    for (int i = 0; i < 3 && spw_pool_move_end(f->pool, f->move) != SPW_OK; i++) {
        pool_check(f);
    }
    pool_check(f);
    return bytes;
}

/* Begins a move and its copies. */
static void begin_copying(struct pool_fixture *f, size_t granules)
{
    assert_int_equal(begin(f, SPW_TIER_HOST, granules), SPW_OK);
    assert_int_equal(spw_pool_move_copy(f->pool, f->move, true), SPW_OK);
}

/* Completes a move that has copied. Returns the bytes moved. */
static uint64_t finish(struct pool_fixture *f)
{
    uint64_t bytes = 0;

    assert_int_equal(spw_pool_move_poll(f->pool, f->move), SPW_OK);
    assert_int_equal(spw_pool_move_commit(f->pool, f->move, &bytes), SPW_OK);
    pool_check(f);
    assert_int_equal(spw_pool_move_end(f->pool, f->move), SPW_OK);
    return bytes;
}

static void test_there_and_back(void **state)
{
    struct pool_fixture f;
    uint64_t a, b;

    open_tiers(&f);
    a = pool_alloc(&f, 3 * GRANULE, &stream_a);
    fake_vm_write(&f.vm, a, 3 * GRANULE, 100);
    assert_int_equal(move(&f, SPW_TIER_HOST, 3), 3 * GRANULE);
    pool_expect(&f, a, 3, 100, 3);
    assert_int_equal(spw_counter_get(&f.counters.spilled_bytes), 3 * GRANULE);
    assert_int_equal(spw_counter_get(&f.counters.host_used_bytes), 3 * GRANULE);
    /* The chunks of the device serve other blocks now. */
    b = pool_alloc(&f, 5 * GRANULE, &stream_a);
    assert_int_equal(fake_vm_on_host(&f.vm, b, 5 * GRANULE), 0);
    pool_free(&f, b, &stream_a);
    assert_int_equal(move(&f, SPW_TIER_DEVICE, 3), 3 * GRANULE);
    pool_expect(&f, a, 3, 100, 0);
    assert_int_equal(spw_counter_get(&f.counters.promoted_bytes), 3 * GRANULE);
    assert_int_equal(spw_counter_get(&f.counters.host_used_bytes), 0);
    assert_int_equal(f.vm.host_chunks, 3); /* kept for the next move */
    pool_close(&f);
}

/* Of a move in parts, each is committed alone, and its copies are those of its own items. */
static void test_parts(void **state)
{
    uint64_t address[4], bytes = 0, moved = 0;
    struct pool_fixture f;
    size_t parts = 0;

    open_tiers(&f);
    for (size_t i = 0; i < 4; i++) {
        address[i] = pool_alloc(&f, 2 * GRANULE, &stream_a);
        fake_vm_write(&f.vm, address[i], 2 * GRANULE, (uint64_t)(100 * (i + 1)));
    }
    f.vm.immediate = false;
    assert_int_equal(begin(&f, SPW_TIER_HOST, 8), SPW_OK);
    assert_int_equal(spw_pool_move_copy_parts(f.pool, f.move, &parts), SPW_OK);
    assert_true(parts > 1 && parts <= SPW_MOVE_PARTS);
    assert_int_equal(spw_pool_move_poll_part(f.pool, f.move, 0), SPW_E_AGAIN);
    assert_int_equal(spw_pool_move_poll(f.pool, f.move), SPW_E_AGAIN);
    for (size_t part = 0; part < parts; part++) {
        f.vm.finished = f.vm.clock - (parts - 1 - part); /* each part has one fence */
        if (part + 1 < parts) {
            assert_int_equal(spw_pool_move_poll_part(f.pool, f.move, part + 1), SPW_E_AGAIN);
        }
        assert_int_equal(spw_pool_move_poll_part(f.pool, f.move, part), SPW_OK);
        assert_int_equal(spw_pool_move_commit_part(f.pool, f.move, part, &bytes), SPW_OK);
        assert_true(bytes > 0);
        moved += bytes;
        pool_check(&f);
        assert_int_equal(spw_counter_get(&f.counters.spilled_bytes), moved);
        assert_int_equal(spw_counter_get(&f.counters.host_used_bytes), moved);
    }
    assert_int_equal(moved, 8 * GRANULE);
    assert_int_equal(spw_pool_move_end(f.pool, f.move), SPW_OK);
    for (size_t i = 0; i < 4; i++) {
        pool_expect(&f, address[i], 2, (uint64_t)(100 * (i + 1)), 2);
    }
    pool_close(&f);
}

/* A move that is given up after its first part leaves the others where they are. */
static void test_given_up_between_parts(void **state)
{
    struct pool_fixture f;
    uint64_t address, bytes = 0;
    size_t parts = 0;

    open_tiers(&f);
    address = pool_alloc(&f, 8 * GRANULE, &stream_a);
    fake_vm_write(&f.vm, address, 8 * GRANULE, 100);
    f.vm.immediate = false;
    assert_int_equal(begin(&f, SPW_TIER_HOST, 8), SPW_OK);
    assert_int_equal(spw_pool_move_copy_parts(f.pool, f.move, &parts), SPW_OK);
    fake_vm_complete(&f.vm);
    assert_int_equal(spw_pool_move_poll_part(f.pool, f.move, 0), SPW_OK);
    assert_int_equal(spw_pool_move_commit_part(f.pool, f.move, 0, &bytes), SPW_OK);
    assert_in_range(bytes, GRANULE, 7 * GRANULE);
    assert_int_equal(spw_pool_move_end(f.pool, f.move), SPW_OK);
    pool_check(&f);
    pool_expect(&f, address, 8, 100, bytes / GRANULE);
    pool_close(&f);
}

/* Spare chunks are mapped for several blocks at once, as long as they last. */
static void test_mapped_ahead(void **state)
{
    const size_t ahead[] = {0, 4, 2};

    for (size_t i = 0; i < sizeof(ahead) / sizeof(ahead[0]); i++) {
        struct pool_fixture f;
        size_t hits = 0;

        open_tiers(&f);
        (void)pool_alloc(&f, 7 * GRANULE, &stream_a);
        spw_pool_map_ahead(f.pool, ahead[i]);
        assert_int_equal(move(&f, SPW_TIER_HOST, 7), 7 * GRANULE);
        for (size_t block = 0; block < 1 + ahead[i]; block++) {
            (void)pool_memory_calls(&f);
            (void)pool_alloc(&f, GRANULE, &stream_a);
            hits += pool_memory_calls(&f) == 0;
        }
        assert_int_equal(hits, ahead[i]);
        /* The rest is left for a block that needs all of it. */
        (void)pool_alloc(&f, (DEVICE - 1 - ahead[i]) * GRANULE, &stream_a);
        assert_int_equal(f.vm.chunks, DEVICE);
        pool_close(&f);
    }
}

/* Blocks move in the order of allocation, and no more than requested. */
static void test_coldest_first(void **state)
{
    struct pool_fixture f;
    uint64_t blocks[3];

    open_tiers(&f);
    for (uint64_t i = 0; i < 3; i++) {
        blocks[i] = pool_alloc(&f, 2 * GRANULE, &stream_a);
        fake_vm_write(&f.vm, blocks[i], 2 * GRANULE, 10 * i);
        pool_free(&f, pool_alloc(&f, GRANULE, &stream_a), &stream_a);
    }
    assert_int_equal(move(&f, SPW_TIER_HOST, 3), 3 * GRANULE);
    pool_expect(&f, blocks[0], 2, 0, 2);
    pool_expect(&f, blocks[1], 2, 10, 1);
    pool_expect(&f, blocks[2], 2, 20, 0);
    pool_close(&f);
}

static void test_only_the_old(void **state)
{
    const struct spw_move_request request = {.to = SPW_TIER_HOST, .bytes = GRANULE, .least_age = 2};
    struct pool_fixture f;
    uint64_t address;

    open_tiers(&f);
    address = pool_alloc(&f, GRANULE, &stream_a);
    pool_free(&f, pool_alloc(&f, GRANULE, &stream_a), &stream_a);
    assert_int_equal(spw_pool_move_begin(f.pool, &request, &f.move), SPW_E_NOTHING);
    pool_free(&f, pool_alloc(&f, GRANULE, &stream_a), &stream_a);
    assert_int_equal(spw_pool_move_begin(f.pool, &request, &f.move), SPW_OK);
    assert_int_equal(spw_pool_move_end(f.pool, f.move), SPW_OK);
    pool_free(&f, address, &stream_a);
    pool_close(&f);
}

static void test_fixed_blocks_stay(void **state)
{
    struct pool_fixture f;
    uint64_t fixed, movable;

    open_tiers(&f);
    fixed = pool_alloc(&f, 2 * GRANULE + GRANULE / 2, &stream_a);
    spw_pool_fix_all(f.pool);
    movable = pool_alloc(&f, 2 * GRANULE, &stream_a);
    /* They share a granule, which stays as well. */
    assert_int_equal(movable, fixed + 2 * GRANULE + GRANULE / 2);
    assert_int_equal(move(&f, SPW_TIER_HOST, 8), 2 * GRANULE);
    assert_int_equal(fake_vm_on_host(&f.vm, fixed, 2 * GRANULE + GRANULE / 2), 0);
    spw_pool_release_all(f.pool);
    assert_int_equal(move(&f, SPW_TIER_HOST, 8), 3 * GRANULE);
    pool_close(&f);
}

static void set_attributes(struct pool_fixture *f, uint64_t address, uint64_t bytes,
                           const struct spw_block_attributes *attributes, size_t blocks)
{
    assert_int_equal(spw_pool_set_attributes(f->pool, address, bytes, attributes), blocks);
    pool_check(f);
}

/* What a graph names stays; while it may move, it is the last to go and the first to come back. */
static void test_blocks_of_graphs(void **state)
{
    static const struct spw_block_attributes named = {.fix = SPW_FIXED_BY_GRAPH};
    static const struct spw_block_attributes urgent = {.prioritize = true, .priority = 9};
    struct pool_fixture f;
    uint64_t graph, other;

    open_tiers(&f);
    graph = pool_alloc(&f, 2 * GRANULE, &stream_a);
    other = pool_alloc(&f, 2 * GRANULE, &stream_a);
    set_attributes(&f, graph, 1, &named, 1);
    set_attributes(&f, other, 1, &urgent, 1);
    assert_int_equal(move(&f, SPW_TIER_HOST, 8), 2 * GRANULE);
    assert_int_equal(fake_vm_on_host(&f.vm, graph, 2 * GRANULE), 0);
    assert_int_equal(move(&f, SPW_TIER_DEVICE, 8), 2 * GRANULE);
    spw_pool_let_graphs_move(f.pool, true);
    assert_int_equal(move(&f, SPW_TIER_HOST, 2), 2 * GRANULE);
    assert_int_equal(fake_vm_on_host(&f.vm, graph, 2 * GRANULE), 0);
    assert_int_equal(move(&f, SPW_TIER_HOST, 2), 2 * GRANULE);
    assert_int_equal(fake_vm_on_host(&f.vm, graph, 2 * GRANULE), 2);
    assert_int_equal(move(&f, SPW_TIER_DEVICE, 2), 2 * GRANULE);
    assert_int_equal(fake_vm_on_host(&f.vm, graph, 2 * GRANULE), 0);
    spw_pool_let_graphs_move(f.pool, false);
    assert_int_equal(move(&f, SPW_TIER_HOST, 8), 0);
    pool_close(&f);
}

/* A move that has begun commits nothing once all is fixed. */
static void test_no_move_ends_with_all_fixed(void **state)
{
    struct pool_fixture f;
    uint64_t bytes = 1, address;

    open_tiers(&f);
    address = pool_alloc(&f, 2 * GRANULE, &stream_a);
    assert_int_equal(begin(&f, SPW_TIER_HOST, 8), SPW_OK);
    assert_int_equal(spw_pool_move_copy(f.pool, f.move, true), SPW_OK);
    spw_pool_fix_all(f.pool);
    (void)spw_pool_move_commit(f.pool, f.move, &bytes);
    assert_int_equal(spw_pool_move_end(f.pool, f.move), SPW_OK);
    assert_int_equal(fake_vm_on_host(&f.vm, address, 2 * GRANULE), 0);
    pool_check(&f);
    pool_close(&f);
}

static const struct spw_block_attributes pinned = {.fix = SPW_FIXED_BY_PROGRAM};
static const struct spw_block_attributes unpinned = {.unfix = SPW_FIXED_BY_PROGRAM};
static const struct spw_block_attributes known = {.fix = SPW_FIXED_SHARED};

/* Blocks with a byte in the range are changed, also in their middle; those beside it are not. */
static void test_treated_blocks_stay(void **state)
{
    struct pool_fixture f;
    uint64_t a, b, c;

    open_tiers(&f);
    a = pool_alloc(&f, 2 * GRANULE, &stream_a);
    b = pool_alloc(&f, 2 * GRANULE, &stream_a);
    c = pool_alloc(&f, 2 * GRANULE, &stream_a);
    assert_int_equal(b, a + 2 * GRANULE);
    set_attributes(&f, b + GRANULE + 1, GRANULE, &pinned, 2);
    assert_int_equal(move(&f, SPW_TIER_HOST, 8), 2 * GRANULE);
    assert_int_equal(fake_vm_on_host(&f.vm, a, 2 * GRANULE), 2);
    /* One reason is removed, another stays. */
    set_attributes(&f, b, 1, &known, 1);
    set_attributes(&f, a, 6 * GRANULE, &unpinned, 3);
    assert_int_equal(move(&f, SPW_TIER_HOST, 8), 2 * GRANULE);
    assert_int_equal(fake_vm_on_host(&f.vm, b, 2 * GRANULE), 0);
    assert_int_equal(fake_vm_on_host(&f.vm, c, 2 * GRANULE), 2);
    pool_close(&f);
}

/* A reused record starts with new attributes, whether all of the freed block or a part is reused.
 */
static void test_treatment_ends_with_the_block(void **state)
{
    struct pool_fixture f;
    uint64_t a, c;

    open_tiers(&f);
    a = pool_alloc(&f, 2 * GRANULE, &stream_a);
    (void)pool_alloc(&f, GRANULE, &stream_a);
    c = pool_alloc(&f, GRANULE, &stream_a);
    set_attributes(&f, a, 4 * GRANULE, &known, 3);
    pool_free(&f, a, &stream_a);
    pool_free(&f, c, &stream_a);
    assert_int_equal(spw_pool_set_attributes(f.pool, a, 1, &known), 0);
    assert_int_equal(pool_alloc(&f, 2 * GRANULE, &stream_a), a);
    assert_int_equal(move(&f, SPW_TIER_HOST, 8), 2 * GRANULE);
    pool_free(&f, a, &stream_a);
    assert_int_equal(spw_pool_set_attributes(f.pool, a, 1, &known), 0);
    pool_close(&f);
}

static void test_no_block_to_set(void **state)
{
    struct pool_fixture f;
    uint64_t a;

    open_tiers(&f);
    a = pool_alloc(&f, GRANULE, &stream_a);
    set_attributes(&f, a, 0, &pinned, 0);
    set_attributes(&f, a + 1, 0, &pinned, 0);
    set_attributes(&f, a, UINT64_MAX, &pinned, 0);
    set_attributes(&f, a + GRANULE, GRANULE, &pinned, 0);
    set_attributes(&f, 4096, GRANULE, &pinned, 0);
    assert_int_equal(move(&f, SPW_TIER_HOST, 1), GRANULE);
    pool_close(&f);
}

static void test_fixed_during_a_move(void **state)
{
    struct pool_fixture f;
    uint64_t a, b;

    open_tiers(&f);
    a = pool_alloc(&f, 2 * GRANULE, &stream_a);
    b = pool_alloc(&f, 2 * GRANULE, &stream_a);
    fake_vm_write(&f.vm, a, 2 * GRANULE, 100);
    fake_vm_write(&f.vm, b, 2 * GRANULE, 200);
    begin_copying(&f, 4);
    set_attributes(&f, a, 1, &known, 1);
    assert_int_equal(finish(&f), 2 * GRANULE);
    pool_expect(&f, a, 2, 100, 0);
    pool_expect(&f, b, 2, 200, 2);
    pool_close(&f);
}

/* Also where a block was when the move began. */
static void test_fixed_block_begins_during_a_move(void **state)
{
    const struct spw_pool_placement fixed = {.limit_bytes = UINT64_MAX, .fixed = true};
    const struct spw_request request = {
        .bytes = 2 * GRANULE, .stream = &stream_a, .placement = &fixed};
    struct spw_result result;
    struct pool_fixture f;
    uint64_t a;

    open_tiers(&f);
    a = pool_alloc(&f, 4 * GRANULE, &stream_a);
    begin_copying(&f, 4);
    pool_free(&f, a, &stream_a);
    assert_int_equal(spw_pool_alloc(f.pool, &request, &result), SPW_OK);
    assert_int_equal(result.address, a);
    fake_vm_write(&f.vm, a, 2 * GRANULE, 7);
    assert_int_equal(spw_pool_move_poll(f.pool, f.move), SPW_OK);
    assert_int_equal(spw_pool_move_copy(f.pool, f.move, false), SPW_OK);
    (void)finish(&f);
    pool_expect(&f, a, 2, 7, 0);
    pool_close(&f);
}

/* Blocks of low priority are moved first, before older ones of higher priority, and come back last.
 */
static void test_priority_before_age(void **state)
{
    static const int32_t priorities[3] = {1, 0, -1};
    struct pool_fixture f;
    uint64_t blocks[3];

    open_tiers(&f);
    for (uint64_t i = 0; i < 3; i++) {
        const struct spw_block_attributes attributes = {.prioritize = true,
                                                        .priority = priorities[i]};

        blocks[i] = pool_alloc(&f, GRANULE, &stream_a);
        set_attributes(&f, blocks[i], GRANULE, &attributes, 1);
        pool_free(&f, pool_alloc(&f, GRANULE, &stream_a), &stream_a);
    }
    for (int i = 2; i >= 0; i--) {
        assert_int_equal(move(&f, SPW_TIER_HOST, 1), GRANULE);
        assert_int_equal(fake_vm_on_host(&f.vm, blocks[i], GRANULE), 1);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(move(&f, SPW_TIER_DEVICE, 1), GRANULE);
        assert_int_equal(fake_vm_on_host(&f.vm, blocks[i], GRANULE), 0);
    }
    pool_close(&f);
}

static void test_no_memory_to_move_to(void **state)
{
    struct pool_fixture f;

    open_tiers(&f);
    spw_pool_set_host_limit(f.pool, 2 * GRANULE);
    (void)pool_alloc(&f, 4 * GRANULE, &stream_a);
    assert_int_equal(move(&f, SPW_TIER_HOST, 4), 2 * GRANULE);
    assert_int_equal(begin(&f, SPW_TIER_HOST, 4), SPW_E_NO_MEMORY);
    pool_close(&f);
}

static void test_free_during_a_move(void **state)
{
    struct pool_fixture f;
    uint64_t block, next;

    open_tiers(&f);
    block = pool_alloc(&f, 4 * GRANULE, &stream_a);
    begin_copying(&f, 4);
    pool_free(&f, block, &stream_a);
    /* Pinned: the memory is neither released nor taken for another address. */
    assert_int_equal(spw_pool_trim(f.pool, 0), 0);
    pool_check(&f);
    next = pool_alloc(&f, 2 * GRANULE, &stream_a);
    assert_int_equal(next, block);
    fake_vm_write(&f.vm, next, 2 * GRANULE, 7);
    /* As after a submission: everything is copied again. */
    assert_int_equal(spw_pool_move_poll(f.pool, f.move), SPW_OK);
    assert_int_equal(spw_pool_move_copy(f.pool, f.move, false), SPW_OK);
    (void)finish(&f);
    pool_expect(&f, next, 2, 7, 2);
    pool_free(&f, next, &stream_a);
    assert_int_equal(spw_pool_trim(f.pool, 0), DEVICE / 2 * GRANULE);
    (void)spw_pool_trim_host(f.pool);
    assert_int_equal(f.vm.host_chunks, 0);
    pool_close(&f);
}

/* The copy of an abandoned move may go on for a while. */
static void test_abandoned_while_copying(void **state)
{
    struct pool_fixture f;
    uint64_t block;

    open_tiers(&f);
    f.vm.immediate = false;
    block = pool_alloc(&f, 4 * GRANULE, &stream_a);
    fake_vm_write(&f.vm, block, 4 * GRANULE, 1);
    begin_copying(&f, 4);
    assert_int_equal(spw_pool_move_poll(f.pool, f.move), SPW_E_AGAIN);
    assert_int_equal(spw_pool_move_drain(f.pool, f.move), SPW_E_AGAIN);
    assert_int_equal(spw_pool_move_end(f.pool, f.move), SPW_E_AGAIN);
    assert_int_equal(begin(&f, SPW_TIER_HOST, 1), SPW_E_NOTHING); /* all is pinned */
    fake_vm_complete(&f.vm);
    assert_int_equal(spw_pool_move_end(f.pool, f.move), SPW_OK);
    assert_int_equal(spw_pool_move_end(f.pool, f.move), SPW_OK);
    pool_check(&f);
    pool_expect(&f, block, 4, 1, 0);
    pool_close(&f);
}

static void test_pool_goes_during_a_move(void **state)
{
    struct pool_fixture f;

    open_tiers(&f);
    (void)pool_alloc(&f, 4 * GRANULE, &stream_a);
    begin_copying(&f, 4);
    pool_close(&f);
}

static void test_capture(void **state)
{
    struct pool_fixture f;

    open_tiers(&f);
    (void)pool_alloc(&f, 4 * GRANULE, &stream_a);
    f.vm.capturing = true;
    assert_int_equal(move(&f, SPW_TIER_HOST, 4), 0);
    f.vm.capturing = false;
    assert_int_equal(move(&f, SPW_TIER_HOST, 4), 4 * GRANULE);
    pool_close(&f);
}

static void test_verify(void **state)
{
    struct pool_fixture f;
    uint64_t block, bytes;

    open_tiers(&f);
    block = pool_alloc(&f, 4 * GRANULE, &stream_a);
    fake_vm_write(&f.vm, block, 4 * GRANULE, 50);
    begin_copying(&f, 4);
    assert_int_equal(spw_pool_move_hash(f.pool, f.move), SPW_OK);
    assert_int_equal(spw_pool_move_poll(f.pool, f.move), SPW_OK);
    assert_int_equal(spw_pool_move_commit(f.pool, f.move, &bytes), SPW_OK);
    assert_int_equal(spw_pool_move_verify(f.pool, f.move), 0);
    fake_vm_write(&f.vm, block + 2 * GRANULE, GRANULE, 99);
    assert_int_equal(spw_pool_move_verify(f.pool, f.move), block + 2 * GRANULE);
    assert_int_equal(spw_pool_move_end(f.pool, f.move), SPW_OK);
    pool_close(&f);
}

/* Blocks that share granules, free memory between them, several runs: moved in both directions. */
static bool run_with_faults(int fail_call, size_t fail_after, size_t fail_more)
{
    uint64_t blocks[5], sizes[5], moved = 0;
    struct pool_fixture f;
    bool reached;

    open_tiers(&f);
    for (uint64_t i = 0; i < 5; i++) {
        sizes[i] = i % 2 == 0 ? GRANULE / 2 * 3 : GRANULE;
        blocks[i] = pool_alloc(&f, sizes[i], &stream_a);
    }
    pool_free(&f, blocks[2], &stream_a);
    for (uint64_t i = 0; i < 5; i++) {
        if (i != 2) {
            fake_vm_write(&f.vm, blocks[i] + sizes[i] - GRANULE / 2, 1, 100 * i);
        }
    }
    f.vm.fail_call = fail_call;
    f.vm.fail_after = fail_after;
    f.vm.fail_more = fail_more;
    for (int i = 0; i < 6; i++) {
        moved += move(&f, i % 2 == 0 ? SPW_TIER_HOST : SPW_TIER_DEVICE, 3 + (size_t)i);
    }
    reached = fail_call >= 0 && f.vm.calls[fail_call] > fail_after;
    f.vm.fail_call = -1;
    assert_true(moved > 0 || fail_more > 0);
    assert_int_equal(spw_pool_move_remap_lost(f.pool), SPW_OK);
    for (uint64_t i = 0; i < 5; i++) {
        if (i != 2) {
            assert_true(fake_vm_usable(&f.vm, blocks[i], sizes[i]));
            assert_int_equal(fake_vm_differs(&f.vm, blocks[i] + sizes[i] - GRANULE / 2, 1, 100 * i),
                             0);
            pool_free(&f, blocks[i], &stream_a);
        }
    }
    pool_close_empty(&f);
    return reached;
}

static void sweep(enum fake_call call, size_t more)
{
    pool_sweep(run_with_faults, call, more);
}

static void test_faults(void **state)
{
    static const enum fake_call calls[] = {FAKE_CREATE, FAKE_MAP,   FAKE_ACCESS, FAKE_UNMAP,
                                           FAKE_FENCE,  FAKE_QUERY, FAKE_COPY};

    assert_false(run_with_faults(-1, 0, 0));
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        sweep(calls[i], 0);
    }
}

/* A step that fails several times is retried until it succeeds: nothing is lost. */
static void test_stubborn_faults(void **state)
{
    static const enum fake_call calls[] = {FAKE_MAP, FAKE_ACCESS, FAKE_UNMAP};

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        for (size_t more = 1; more < 24; more += more < 6 ? 1 : 4) {
            sweep(calls[i], more);
        }
    }
}

/* Access is refused for good from the commit on: the moved blocks are lost, nothing else is harmed,
 * and their memory serves no other block until it is accessible again. */
static void test_lost(void **state)
{
    uint64_t a, b, c, bytes = 0;
    struct pool_fixture f;

    open_tiers(&f);
    a = pool_alloc(&f, 2 * GRANULE + GRANULE / 2, &stream_a); /* the rest of its last granule is
                                                               * free */
    fake_vm_write(&f.vm, a, 2 * GRANULE, 100);
    assert_int_equal(begin(&f, SPW_TIER_HOST, 8), SPW_OK);
    assert_int_equal(spw_pool_move_copy(f.pool, f.move, true), SPW_OK);
    assert_int_equal(spw_pool_move_poll(f.pool, f.move), SPW_OK);
    f.vm.fail_call = FAKE_ACCESS;
    f.vm.fail_after = 0;
    f.vm.fail_more = SIZE_MAX;
    assert_int_equal(spw_pool_move_commit(f.pool, f.move, &bytes), SPW_E_NO_MEMORY);
    pool_check(&f);
    assert_int_equal(bytes, 0);
    assert_int_equal(spw_pool_move_end(f.pool, f.move), SPW_OK);
    assert_int_equal(spw_pool_move_lost(f.pool, &bytes), a);
    assert_int_equal(bytes, 3 * GRANULE);
    assert_int_equal(begin(&f, SPW_TIER_HOST, 1), SPW_E_AGAIN);
    assert_int_equal(spw_pool_move_remap_lost(f.pool), SPW_E_AGAIN);
    pool_check(&f);
    f.vm.fail_call = -1;
    /* The free rest of its last granule is out of use. */
    b = pool_alloc(&f, GRANULE / 4, &stream_a);
    assert_true(b >= a + 3 * GRANULE);
    c = pool_alloc(&f, 3 * GRANULE, &stream_a);
    pool_free(&f, c, &stream_a);
    assert_int_equal(spw_pool_move_remap_lost(f.pool), SPW_OK);
    pool_check(&f);
    pool_expect(&f, a, 2, 100, 0);
    assert_int_equal(spw_pool_move_lost(f.pool, &bytes), 0);
    assert_int_equal(move(&f, SPW_TIER_HOST, 8), 4 * GRANULE);
    pool_close(&f);
}

/* A move that is refused at the commit for good. */
static void lose(struct pool_fixture *f, enum fake_call call)
{
    uint64_t bytes;

    begin_copying(f, 8);
    assert_int_equal(spw_pool_move_poll(f->pool, f->move), SPW_OK);
    f->vm.fail_call = (int)call;
    f->vm.fail_after = 0;
    f->vm.fail_more = SIZE_MAX;
    assert_int_equal(spw_pool_move_commit(f->pool, f->move, &bytes), SPW_E_NO_MEMORY);
    assert_int_equal(spw_pool_move_end(f->pool, f->move), SPW_OK);
}

/* Mapping is retried before each piece of work, as long as necessary. Spare chunks are released
 * before, since the driver may need memory for its tables. */
static void test_lost_and_asked_for(void **state)
{
    _Atomic uint64_t pending = 0;
    struct pool_fixture f;
    bool moves = false;
    uint64_t a;

    pool_open_as(&f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                               .arena_bytes = 256ull * GRANULE,
                                               .limit_bytes = (uint64_t)DEVICE * GRANULE,
                                               .to_commit = &pending});
    assert_int_equal(spw_pool_open_host(f.pool, (uint64_t)HOST * GRANULE, &moves), SPW_OK);
    f.vm.immediate = true;
    a = pool_alloc(&f, 2 * GRANULE, &stream_a);
    fake_vm_write(&f.vm, a, 2 * GRANULE, 100);
    pool_leave_spare(&f, 2);
    assert_int_equal(f.vm.chunks, 4);
    lose(&f, FAKE_MAP);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(spw_counter_get(&pending), 1);
        assert_int_equal(spw_pool_commit(f.pool, /* spilling */ false), SPW_OK);
        pool_check(&f);
        assert_false(fake_vm_usable(&f.vm, a, 2 * GRANULE));
        assert_int_equal(f.vm.chunks, 2);
    }
    f.vm.fail_call = -1;
    assert_int_equal(spw_pool_commit(f.pool, /* spilling */ false), SPW_OK);
    pool_check(&f);
    assert_int_equal(spw_counter_get(&pending), 0);
    pool_expect(&f, a, 2, 100, 0);
    lose(&f, FAKE_ACCESS);
    assert_int_equal(spw_counter_get(&pending), 1);
    pool_close(&f);
    assert_int_equal(spw_counter_get(&pending), 0);
}

/* A lost block is freed. */
static void test_lost_and_freed(void **state)
{
    uint64_t a, b, bytes = 0;
    struct pool_fixture f;

    open_tiers(&f);
    a = pool_alloc(&f, 2 * GRANULE, &stream_a);
    assert_int_equal(begin(&f, SPW_TIER_HOST, 8), SPW_OK);
    assert_int_equal(spw_pool_move_copy(f.pool, f.move, true), SPW_OK);
    assert_int_equal(spw_pool_move_poll(f.pool, f.move), SPW_OK);
    f.vm.fail_call = FAKE_MAP;
    f.vm.fail_after = 0;
    f.vm.fail_more = SIZE_MAX;
    assert_int_equal(spw_pool_move_commit(f.pool, f.move, &bytes), SPW_E_NO_MEMORY);
    assert_int_equal(spw_pool_move_end(f.pool, f.move), SPW_OK);
    pool_free(&f, a, &stream_a);
    f.vm.fail_call = -1;
    b = pool_alloc(&f, 2 * GRANULE, &stream_a);
    assert_true(b != a);
    assert_int_equal(spw_pool_refresh_access(f.pool), SPW_OK);
    pool_close(&f); /* with it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_given_up_between_parts),
        cmocka_unit_test(test_mapped_ahead),
        cmocka_unit_test(test_coldest_first),
        cmocka_unit_test(test_only_the_old),
        cmocka_unit_test(test_fixed_blocks_stay),
        cmocka_unit_test(test_blocks_of_graphs),
        cmocka_unit_test(test_no_move_ends_with_all_fixed),
        cmocka_unit_test(test_treated_blocks_stay),
        cmocka_unit_test(test_treatment_ends_with_the_block),
        cmocka_unit_test(test_no_block_to_set),
        cmocka_unit_test(test_fixed_during_a_move),
        cmocka_unit_test(test_fixed_block_begins_during_a_move),
        cmocka_unit_test(test_priority_before_age),
        cmocka_unit_test(test_no_memory_to_move_to),
        cmocka_unit_test(test_free_during_a_move),
        cmocka_unit_test(test_abandoned_while_copying),
        cmocka_unit_test(test_pool_goes_during_a_move),
        cmocka_unit_test(test_capture),
        cmocka_unit_test(test_verify),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_stubborn_faults),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_lost_and_asked_for),
        cmocka_unit_test(test_lost_and_freed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
