/* Exports step by step: what each step answers, which chunks there are then, and what is given
 * back.
 */
#include "pool/pool.h"
#include "pool_fixture.h"

enum { DEVICE = 24, HOST = 16, CHUNKS = 128 };

static struct pool_fixture f;

static void open_limited(uint64_t limit_granules)
{
    bool moves = false;

    pool_open_small(&f, 4 * limit_granules, limit_granules, 0);
    assert_int_equal(spw_pool_open_host(f.pool, (uint64_t)HOST * GRANULE, &moves), SPW_OK);
    f.vm.immediate = true;
}

static uint64_t id_of(uint64_t address)
{
    struct spw_block block = {0};

    assert_true(spw_pool_find(f.pool, address, &block));
    return block.id;
}

/* Begins a step, which must answer `expected`. True if there is nothing left to do. */
static bool begins(uint64_t address, enum spw_err expected)
{
    bool done = true;

    assert_int_equal(spw_pool_export_begin(f.pool, address, id_of(address), &done), expected);
    pool_check(&f);
    return done;
}

static void copy(void)
{
    assert_int_equal(spw_pool_export_drain(f.pool), SPW_OK);
    assert_int_equal(spw_pool_export_copy(f.pool), SPW_OK);
    assert_int_equal(spw_pool_export_poll(f.pool), SPW_OK);
}

static void commit(void)
{
    assert_int_equal(spw_pool_export_commit(f.pool), SPW_OK);
    pool_check(&f);
    spw_pool_export_end(f.pool);
    pool_check(&f);
}

/* Exports a block. Returns the number of steps. */
static size_t exports(uint64_t address)
{
    size_t steps = 0;

    for (; !begins(address, SPW_OK); steps++) {
        copy();
        commit();
    }
    return steps;
}

/* The granules that are mapped, at whatever address. */
static size_t mappings(void)
{
    size_t count = 0;

    for (size_t i = 0; i < f.vm.granules; i++) {
        count += f.vm.mapped[i] != 0;
    }
    return count;
}

static uint64_t committed(void)
{
    return spw_counter_get(&f.counters.committed_bytes) / GRANULE;
}

/* ---- the beginning ---- */

static void test_blocks_that_are_not_there(void **state)
{
    uint64_t block, id;
    bool done = true;

    open_limited(DEVICE);
    block = pool_alloc(&f, 2 * GRANULE, &stream_a);
    id = id_of(block);
    assert_int_equal(spw_pool_export_begin(f.pool, block + 512, id, &done), SPW_E_NOT_OURS);
    assert_false(done);
    spw_pool_shut(f.pool);
    assert_int_equal(spw_pool_export_begin(f.pool, block, id, &done), SPW_E_NOT_OURS);
    pool_close(&f);
}

static void test_blocks_without_memory_of_the_device(void **state)
{
    static _Atomic uint64_t to_commit;
    struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .on_host = true};
    const struct spw_request request = {
        .bytes = 2 * GRANULE, .stream = &stream_a, .placement = &placement};
    struct spw_result result;

    pool_open_as(&f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                               .arena_bytes = 64ull * GRANULE,
                                               .limit_bytes = 16ull * GRANULE,
                                               .host_limit_bytes = 16ull * GRANULE,
                                               .to_commit = &to_commit});
    f.vm.immediate = true;
    assert_int_equal(spw_pool_alloc(f.pool, &request, &result), SPW_OK);
    (void)begins(result.address, SPW_E_UNSUPPORTED);
    placement = (struct spw_pool_placement){.limit_bytes = UINT64_MAX, .lazy = true};
    assert_int_equal(spw_pool_alloc(f.pool, &request, &result), SPW_OK);
    assert_int_equal(to_commit, 1);
    (void)begins(result.address, SPW_E_UNSUPPORTED);
    assert_int_equal(spw_pool_commit(f.pool, false), SPW_OK);
    assert_int_equal(exports(result.address), 1);
    pool_close(&f);
}

/* One step at a time, and none of what is being moved. */
static void test_not_yet(void **state)
{
    const struct spw_move_request request = {.to = SPW_TIER_HOST, .bytes = GRANULE};
    uint64_t moved, other;

    open_limited(DEVICE);
    moved = pool_alloc(&f, GRANULE, &stream_a);
    other = pool_alloc(&f, GRANULE, &stream_a);
    assert_int_equal(spw_pool_move_begin(f.pool, &request, &f.move), SPW_OK);
    (void)begins(moved, SPW_E_AGAIN);
    assert_false(begins(other, SPW_OK));
    (void)begins(other, SPW_E_AGAIN);
    spw_pool_move_leave(f.pool, f.move);
    spw_pool_export_end(f.pool);
    assert_false(begins(moved, SPW_OK));
    spw_pool_export_end(f.pool);
    pool_close(&f);
}

/* ---- giving up ---- */

/* A step that is not committed gives everything back, and the block can move again. */
static void test_given_up(void **state)
{
    const struct spw_move_request request = {.to = SPW_TIER_HOST, .bytes = 4 * GRANULE};
    uint64_t block;

    open_limited(DEVICE);
    block = pool_alloc(&f, 4 * GRANULE, &stream_a);
    fake_vm_write(&f.vm, block, 4 * GRANULE, 100);
    assert_false(begins(block, SPW_OK));
    assert_int_equal(committed(), 8);
    assert_int_equal(spw_pool_move_begin(f.pool, &request, &f.move), SPW_E_NOTHING);
    copy();
    spw_pool_export_end(f.pool);
    pool_check(&f);
    assert_int_equal(committed(), 4);
    assert_int_equal(mappings(), 4);
    assert_int_equal(f.vm.live_fences, 0);
    pool_expect(&f, block, 4, 100, 0);
    assert_int_equal(spw_pool_move_begin(f.pool, &request, &f.move), SPW_OK);
    assert_int_equal(spw_pool_move_end(f.pool, f.move), SPW_OK);
    pool_close(&f);
}

/* While copies are under way, it is given back later. */
static void test_given_up_while_copying(void **state)
{
    uint64_t block;

    open_limited(DEVICE);
    block = pool_alloc(&f, 4 * GRANULE, &stream_a);
    assert_false(begins(block, SPW_OK));
    f.vm.immediate = false;
    assert_int_equal(spw_pool_export_copy(f.pool), SPW_OK);
    assert_int_equal(spw_pool_export_poll(f.pool), SPW_E_AGAIN);
    assert_int_equal(spw_pool_export_copy(f.pool), SPW_E_AGAIN);
    spw_pool_export_end(f.pool);
    assert_int_equal(committed(), 8);
    (void)begins(block, SPW_E_AGAIN);
    fake_vm_complete(&f.vm);
    f.vm.immediate = true;
    assert_int_equal(exports(block), 1);
    assert_int_equal(spw_pool_trim(f.pool, 0), 4 * GRANULE); /* the old ones */
    assert_int_equal(committed(), 4);
    pool_close(&f);
}

/* Nothing of a step is left behind when the pool ends in the middle of it. */
static void test_pool_ends(void **state)
{
    for (int copying = 0; copying < 2; copying++) {
        uint64_t block;

        open_limited(DEVICE);
        block = pool_alloc(&f, 4 * GRANULE, &stream_a);
        assert_false(begins(block, SPW_OK));
        f.vm.immediate = false;
        assert_int_equal(spw_pool_export_drain(f.pool), SPW_E_AGAIN);
        if (copying) {
            assert_int_equal(spw_pool_export_copy(f.pool), SPW_OK);
        }
        pool_close(&f);
    }
}

/* ---- waiting ---- */

/* One fence covers what came before the first call; after success the next call is a first one. */
static void test_drain(void **state)
{
    uint64_t block;
    size_t fences;

    open_limited(DEVICE);
    block = pool_alloc(&f, GRANULE, &stream_a);
    assert_false(begins(block, SPW_OK));
    f.vm.immediate = false;
    fences = f.vm.calls[FAKE_FENCE];
    assert_int_equal(spw_pool_export_drain(f.pool), SPW_E_AGAIN);
    assert_int_equal(spw_pool_export_drain(f.pool), SPW_E_AGAIN);
    assert_int_equal(f.vm.calls[FAKE_FENCE], fences + 1);
    assert_int_equal(f.vm.fenced_stream, SPW_STREAM_ALL);
    fake_vm_complete(&f.vm);
    assert_int_equal(spw_pool_export_drain(f.pool), SPW_OK);
    assert_int_equal(spw_pool_export_drain(f.pool), SPW_E_AGAIN);
    assert_int_equal(f.vm.calls[FAKE_FENCE], fences + 2);
    f.vm.fail_call = FAKE_FENCE;
    fake_vm_complete(&f.vm);
    assert_int_equal(spw_pool_export_drain(f.pool), SPW_OK);
    assert_int_equal(spw_pool_export_drain(f.pool), SPW_E_AGAIN); /* no fence */
    f.vm.fail_call = -1;
    spw_pool_export_end(f.pool);
    pool_close(&f);
}

/* ---- the chunks ---- */

/* A granule that is shared with other memory has a chunk of its own. */
static void test_division(void **state)
{
    const struct {
        size_t before, bytes; /* in quarters of a granule */
        size_t count, sizes[5];
    } rows[] = {
        {0, 24, 2, {4, 2}},       {0, 28, 3, {4, 2, 1}}, {2, 24, 4, {1, 4, 1, 1}},
        {2, 22, 3, {1, 4, 1}},    {0, 18, 2, {4, 1}},    {1, 2, 1, {1}},
        {1, 3, 1, {1}},           {0, 3, 1, {1}},        {2, 4, 2, {1, 1}},
        {2, 30, 4, {1, 4, 2, 1}},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct spw_exported_chunk chunks[CHUNKS];
        uint64_t block, offset = 4711;

        open_limited(DEVICE);
        if (rows[i].before > 0) {
            (void)pool_alloc(&f, rows[i].before * GRANULE / 4, &stream_a);
        }
        block = pool_alloc(&f, rows[i].bytes * GRANULE / 4, &stream_a);
        assert_int_equal(spw_pool_export_chunks(f.pool, block, chunks, CHUNKS, &offset), 0);
        assert_int_equal(offset, 4711);
        assert_int_equal(exports(block), 1);
        assert_int_equal(spw_pool_export_chunks(f.pool, block, chunks, CHUNKS, &offset),
                         rows[i].count);
        assert_int_equal(offset, rows[i].before * GRANULE / 4);
        for (size_t k = 0; k < rows[i].count; k++) {
            assert_int_equal(chunks[k].bytes, rows[i].sizes[k] * GRANULE);
            assert_int_equal(f.vm.chunk_size[chunks[k].chunk], rows[i].sizes[k]);
        }
        /* All of them are counted, and as many are listed as there is room for. */
        chunks[1].bytes = 4711;
        assert_int_equal(spw_pool_export_chunks(f.pool, block, chunks, 1, &offset), rows[i].count);
        assert_int_equal(chunks[1].bytes, 4711);
        pool_close(&f);
    }
}

/* An exported chunk is mapped once: it is moved no more. */
static void test_mapped_once(void **state)
{
    uint64_t block;

    open_limited(DEVICE);
    block = pool_alloc(&f, 6 * GRANULE, &stream_a);
    assert_int_equal(exports(block), 1);
    assert_int_equal(mappings(), 6);
    assert_int_equal(spw_pool_trim(f.pool, 0), 6 * GRANULE); /* the old ones */
    assert_int_equal(committed(), 6);
    pool_close(&f);
}

/* Of a large block so many granules are exported in a step. */
static void test_large_block(void **state)
{
    uint64_t block;

    open_limited(700);
    block = pool_alloc(&f, 256ull * GRANULE, &stream_a);
    assert_int_equal(exports(block), 1);
    pool_free(&f, block, &stream_a);
    block = pool_alloc(&f, 257ull * GRANULE, &stream_a);
    fake_vm_write(&f.vm, block, 257ull * GRANULE, 100);
    assert_int_equal(exports(block), 2);
    pool_expect(&f, block, 257, 100, 0);
    pool_close(&f);
}

/* ---- room ---- */

/* Free memory of the pool makes room below the limit, as much as is needed. */
static void test_room_below_the_limit(void **state)
{
    for (uint64_t room = 0; room <= 6; room++) {
        uint64_t block, free, kept;

        open_limited(DEVICE);
        block = pool_alloc(&f, 4 * GRANULE, &stream_a);
        free = pool_alloc(&f, 6 * GRANULE, &stream_a);
        (void)pool_alloc(&f, (6 - room) * GRANULE + 512, &stream_a);
        pool_free(&f, free, &stream_a);
        spw_pool_set_limit(f.pool, committed() * GRANULE + room * GRANULE);
        assert_int_equal(exports(block), 1);
        assert_true(committed() * GRANULE <= spw_counter_get(&f.counters.limit_bytes));
        kept = 6 - (room < 4 ? 4 - room : 0);
        (void)spw_pool_trim(f.pool, committed() * GRANULE - 4 * GRANULE); /* the old ones */
        (void)pool_memory_calls(&f);
        if (kept > 0) {
            assert_int_equal(pool_alloc(&f, kept * GRANULE, &stream_a), free);
            assert_int_equal(pool_memory_calls(&f), 0);
        }
        pool_close(&f);
    }
}

/* Also when the device has less than the limit says. */
static void test_room_on_a_full_device(void **state)
{
    uint64_t block, free;

    open_limited(DEVICE);
    block = pool_alloc(&f, 4 * GRANULE, &stream_a);
    free = pool_alloc(&f, 4 * GRANULE, &stream_a);
    (void)pool_alloc(&f, GRANULE, &stream_a);
    f.vm.most_chunks = 9;
    (void)begins(block, SPW_E_NO_MEMORY);
    assert_int_equal(committed(), 9);
    pool_free(&f, free, &stream_a);
    assert_int_equal(exports(block), 1);
    pool_close(&f);
}

/* ---- the end ---- */

/* Exports a block of one granule and frees it while its work is pending. Returns its address. */
static uint64_t end_pending(void)
{
    uint64_t block;

    open_limited(DEVICE);
    block = pool_alloc(&f, GRANULE, &stream_a);
    assert_int_equal(exports(block), 1);
    (void)spw_pool_trim(f.pool, 0);
    f.vm.immediate = false;
    pool_free(&f, block, &stream_a);
    assert_int_equal(f.vm.chunks, 1);
    fake_vm_complete(&f.vm);
    return block;
}

/* The next call that looks at the pool finds out that the work is complete. */
static void test_released_later(void **state)
{
    struct spw_pool_usage usage;
    uint64_t address;

    (void)end_pending();
    (void)spw_pool_trim(f.pool, UINT64_MAX);
    assert_int_equal(f.vm.chunks, 0);
    pool_close(&f);
    (void)end_pending();
    spw_pool_usage(f.pool, &usage);
    assert_int_equal(usage.committed, 0);
    assert_int_equal(f.vm.chunks, 0);
    pool_close(&f);
    (void)end_pending();
    spw_pool_synchronized(f.pool, &stream_b, 0);
    assert_int_equal(f.vm.chunks, 0);
    pool_close(&f);
    address = end_pending();
    assert_int_equal(pool_alloc(&f, GRANULE, &stream_b), address);
    assert_int_equal(f.vm.chunks, 1);
    pool_close(&f);
}

/* The end of a context ends its blocks, exported ones among them. */
/* The driver maps neither the new chunk nor the old one: the free half of the block's granule is
 * not given to anybody before the driver has mapped it again, which is tried before the next work.
 */
static void test_lost_granule(void **state)
{
    static _Atomic uint64_t to_commit;
    uint64_t address, other;

    atomic_store(&to_commit, 0);
    pool_open_as(&f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                               .arena_bytes = 256ull * GRANULE,
                                               .limit_bytes = (uint64_t)DEVICE * GRANULE,
                                               .to_commit = &to_commit});
    f.vm.immediate = true;
    address = pool_alloc(&f, GRANULE / 2, &stream_a);
    assert_false(begins(address, SPW_OK));
    copy();
    f.vm.fail_call = FAKE_MAP;
    f.vm.fail_after = 0;
    f.vm.fail_more = 2;
    assert_int_not_equal(spw_pool_export_commit(f.pool), SPW_OK);
    f.vm.fail_call = -1;
    pool_check(&f);
    assert_int_equal(atomic_load(&to_commit), 1);
    spw_pool_export_end(f.pool);
    other = pool_alloc(&f, GRANULE / 2, &stream_a);
    assert_true(fake_vm_usable(&f.vm, other, GRANULE / 2));
    assert_int_equal(spw_pool_commit(f.pool, /* spilling */ false), SPW_OK);
    assert_int_equal(atomic_load(&to_commit), 0);
    assert_true(fake_vm_usable(&f.vm, address, GRANULE / 2));
    pool_check(&f);
    pool_close(&f);
}

static void test_end_of_a_context(void **state)
{
    uint64_t block = 0;

    open_limited(DEVICE);
    assert_int_equal(pool_try(f.pool, GRANULE, NULL, &f, &block), SPW_OK);
    assert_int_equal(exports(block), 1);
    (void)spw_pool_trim(f.pool, 0);
    assert_int_equal(f.vm.chunks, 1);
    spw_pool_free_context(f.pool, &f);
    pool_check(&f);
    assert_int_equal(f.vm.chunks, 0);
    pool_close(&f);
}

/* Many blocks, each with a chunk of its own, end in any order. */
static void test_many(void **state)
{
    enum { BLOCKS = 70 };
    uint64_t blocks[BLOCKS];

    open_limited(2 * BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = pool_alloc(&f, GRANULE, &stream_a);
        assert_int_equal(exports(blocks[i]), 1);
    }
    (void)spw_pool_trim(f.pool, 0);
    assert_int_equal(f.vm.chunks, BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++) {
        pool_free(&f, blocks[i * 3 % BLOCKS], &stream_a);
        assert_int_equal(f.vm.chunks, BLOCKS - 1 - i);
    }
    pool_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_that_are_not_there),
        cmocka_unit_test(test_blocks_without_memory_of_the_device),
        cmocka_unit_test(test_not_yet),
        cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_given_up_while_copying),
        cmocka_unit_test(test_pool_ends),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_division),
        cmocka_unit_test(test_mapped_once),
        cmocka_unit_test(test_large_block),
        cmocka_unit_test(test_room_below_the_limit),
        cmocka_unit_test(test_room_on_a_full_device),
        cmocka_unit_test(test_released_later),
        cmocka_unit_test(test_lost_granule),
        cmocka_unit_test(test_end_of_a_context),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
