/* Exports: a block gets chunks of its own at the same addresses, which no other block ever gets. */
#include "pool/pool.h"
#include "pool_fixture.h"

enum { DEVICE = 16, HOST = 16, CHUNKS = 32 };

static void open_with(struct pool_fixture *f, uint64_t chunk_granules, struct spw_account *accounts)
{
    bool moves = false;

    pool_open_as(f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                              .accounts = accounts,
                                              .chunk_bytes = chunk_granules * GRANULE,
                                              .arena_bytes = UINT64_C(256) * GRANULE,
                                              .limit_bytes = (uint64_t)DEVICE * GRANULE});
    assert_int_equal(spw_pool_open_host(f->pool, (uint64_t)HOST * GRANULE, &moves), SPW_OK);
    assert_true(moves);
    f->vm.immediate = true;
}

static void open_tiers(struct pool_fixture *f, uint64_t chunk_granules)
{
    open_with(f, chunk_granules, NULL);
}

static uint64_t id_of(struct pool_fixture *f, uint64_t address)
{
    struct spw_block block = {0};

    assert_true(spw_pool_find(f->pool, address, &block));
    return block.id;
}

static enum spw_err step(struct pool_fixture *f, uint64_t address, bool *ret_done)
{
    enum spw_err err = spw_pool_export_begin(f->pool, address, id_of(f, address), ret_done);

    pool_check(f);
    if (err != SPW_OK || *ret_done) {
        return err;
    }
    err = spw_pool_export_drain(f->pool);
    err = err == SPW_OK ? spw_pool_export_copy(f->pool) : err;
    err = err == SPW_OK ? spw_pool_export_poll(f->pool) : err;
    err = err == SPW_OK ? spw_pool_export_commit(f->pool) : err;
    pool_check(f);
    spw_pool_export_end(f->pool);
    pool_check(f);
    return err;
}

/* Exports a block, in as many steps as it takes. */
static enum spw_err export(struct pool_fixture *f, uint64_t address) {
    enum spw_err err = SPW_OK; bool done = false;

    while (err == SPW_OK && !done){err = step(f, address, &done);}
return err;
}

/* Returns how many chunks an exported block has, whose sizes must cover it. */
static size_t chunks_of(struct pool_fixture *f, uint64_t address, uint64_t bytes)
{
    struct spw_exported_chunk chunks[CHUNKS];
    uint64_t offset = 4711, sum = 0;
    size_t count = spw_pool_export_chunks(f->pool, address, chunks, CHUNKS, &offset);

    for (size_t i = 0; i < count; i++) {
        sum += chunks[i].bytes;
    }
    assert_true(count == 0 || (offset < chunks[0].bytes && offset + bytes <= sum));
    return count;
}

/* Moves what can be moved to the host. Returns the bytes. */
static uint64_t spill(struct pool_fixture *f, size_t granules)
{
    const struct spw_move_request request = {.to = SPW_TIER_HOST, .bytes = granules * GRANULE};
    uint64_t bytes = 0;

    if (spw_pool_move_begin(f->pool, &request, &f->move) == SPW_OK) {
        assert_int_equal(spw_pool_move_copy(f->pool, f->move, true), SPW_OK);
        assert_int_equal(spw_pool_move_poll(f->pool, f->move), SPW_OK);
        assert_int_equal(spw_pool_move_commit(f->pool, f->move, &bytes), SPW_OK);
        assert_int_equal(spw_pool_move_end(f->pool, f->move), SPW_OK);
    }
    pool_check(f);
    return bytes;
}

static void test_content_stays(void **state)
{
    struct pool_fixture f;
    uint64_t block;

    open_tiers(&f, 4);
    block = pool_alloc(&f, 6 * GRANULE, &stream_a);
    fake_vm_write(&f.vm, block, 6 * GRANULE, 100);
    assert_int_equal(chunks_of(&f, block, 6 * GRANULE), 0);
    assert_int_equal(export(&f, block), SPW_OK);
    pool_expect(&f, block, 6, 100, 0);
    assert_true(chunks_of(&f, block, 6 * GRANULE) > 0);
    /* A second time nothing is done. */
    (void)pool_memory_calls(&f);
    assert_int_equal(export(&f, block), SPW_OK);
    assert_int_equal(pool_memory_calls(&f), 0);
    assert_int_equal(spill(&f, DEVICE), 0);
    pool_free(&f, block, &stream_a);
    pool_close(&f);
}

static void test_spilled(void **state)
{
    static struct spw_account accounts[SPW_ACCOUNTS];
    const struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .account = 1};
    const struct spw_request request = {
        .bytes = 5 * GRANULE, .stream = &stream_a, .placement = &placement};
    struct spw_result result;
    struct pool_fixture f;
    uint64_t block;

    open_with(&f, 1, accounts);
    assert_int_equal(spw_pool_alloc(f.pool, &request, &result), SPW_OK);
    block = result.address;
    fake_vm_write(&f.vm, block, 5 * GRANULE, 100);
    assert_int_equal(spill(&f, 3), 3 * GRANULE);
    assert_int_equal(export(&f, block), SPW_OK);
    pool_expect(&f, block, 5, 100, 0);
    assert_int_equal(spw_counter_get(&f.counters.host_used_bytes), 0);
    assert_int_equal(spw_counter_get(&f.counters.promoted_bytes), 3 * GRANULE);
    assert_int_equal(spw_counter_get(&accounts[0].spilled), 3 * GRANULE);
    assert_int_equal(spw_counter_get(&accounts[0].promoted), 3 * GRANULE);
    pool_close(&f);
}

/* A pool of so many granules has chunks of four. A block that stays in place fills half of it. */
static void open_large(struct pool_fixture *f)
{
    const struct spw_block_attributes stays = {.fix = SPW_FIXED_BY_PROGRAM};
    enum { GRANULES = 4096 };
    bool moves = false;

    pool_open_as(f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                              .chunk_bytes = UINT64_C(8) * GRANULE,
                                              .arena_bytes = UINT64_C(2) * GRANULES * GRANULE,
                                              .limit_bytes = UINT64_C(1) * GRANULES * GRANULE});
    assert_int_equal(spw_pool_open_host(f->pool, (uint64_t)HOST * GRANULE, &moves), SPW_OK);
    f->vm.immediate = true;
    assert_int_equal(
        spw_pool_set_attributes(
            f->pool, pool_alloc(f, UINT64_C(1) * GRANULES / 2 * GRANULE, &stream_a), 1, &stays),
        1);
}

/* The granules of the chunk that a granule belongs to. */
static size_t size_at(const struct pool_fixture *f, uint64_t address)
{
    uint64_t chunk = f->vm.mapped[(address - f->vm.base) / GRANULE] - 1;

    while (f->vm.chunk_size[chunk] == 0) {
        chunk--;
    }
    return f->vm.chunk_size[chunk];
}

/* Makes two blocks on one chunk of four granules. */
static void share_a_chunk(struct pool_fixture *f, uint64_t *ret_blocks)
{
    uint64_t whole = pool_alloc(f, 4 * GRANULE, &stream_a);

    assert_int_equal(size_at(f, whole), 4);
    pool_free(f, whole, &stream_a);
    for (uint64_t i = 0; i < 2; i++) {
        ret_blocks[i] = pool_alloc(f, 2 * GRANULE, &stream_a);
        assert_int_equal(size_at(f, ret_blocks[i]), 4);
        fake_vm_write(&f->vm, ret_blocks[i], 2 * GRANULE, 100 * (i + 1));
    }
}

/* Of a large chunk, the memory beside the block stays the pool's, in chunks of its own. */
static void test_neighbours_in_a_chunk(void **state)
{
    for (uint64_t exported = 0; exported < 2; exported++) {
        struct pool_fixture f;
        uint64_t blocks[2];

        open_large(&f);
        share_a_chunk(&f, blocks);
        assert_int_equal(export(&f, blocks[exported]), SPW_OK);
        for (uint64_t i = 0; i < 2; i++) {
            pool_expect(&f, blocks[i], 2, 100 * (i + 1), 0);
            assert_int_equal(size_at(&f, blocks[i]), 2);
        }
        pool_close(&f);
    }
}

/* The memory beside the block stays on the host. Both copies are waited for, whichever is the last.
 */
static void test_neighbours_on_the_host(void **state)
{
    for (uint64_t exported = 0; exported < 2; exported++) {
        struct pool_fixture f;
        uint64_t blocks[2];
        bool done;

        open_large(&f);
        share_a_chunk(&f, blocks);
        assert_int_equal(spill(&f, 4), 4 * GRANULE);
        assert_int_equal(
            spw_pool_export_begin(f.pool, blocks[exported], id_of(&f, blocks[exported]), &done),
            SPW_OK);
        assert_int_equal(spw_pool_export_drain(f.pool), SPW_OK);
        f.vm.immediate = false;
        assert_int_equal(spw_pool_export_copy(f.pool), SPW_OK);
        for (int left = 2; left > 0; left--) {
            f.vm.finished = f.vm.clock - (uint64_t)left;
            assert_int_equal(spw_pool_export_poll(f.pool), SPW_E_AGAIN);
        }
        fake_vm_complete(&f.vm);
        assert_int_equal(spw_pool_export_poll(f.pool), SPW_OK);
        assert_int_equal(spw_pool_export_commit(f.pool), SPW_OK);
        spw_pool_export_end(f.pool);
        pool_check(&f);
        for (uint64_t i = 0; i < 2; i++) {
            pool_expect(&f, blocks[i], 2, 100 * (i + 1), /* on_host */ i == exported ? 0 : 2);
        }
        pool_close(&f);
    }
}

/* What was exported is given back to the driver, and no other block gets it. */
static void test_end(void **state)
{
    struct pool_fixture f;
    uint64_t block, other;

    open_tiers(&f, 4);
    block = pool_alloc(&f, 6 * GRANULE, &stream_a);
    assert_int_equal(export(&f, block), SPW_OK);
    (void)spw_pool_trim(f.pool, 0);
    assert_int_equal(f.vm.chunks, 6);
    f.vm.immediate = false;
    pool_free(&f, block, &stream_a);
    /* Its work may not be complete: it is neither released nor used again, even by its stream. */
    assert_int_equal(f.vm.chunks, 6);
    other = pool_alloc(&f, 6 * GRANULE, &stream_a);
    assert_true(other + 6 * GRANULE <= block || other >= block + 6 * GRANULE);
    assert_int_equal(f.vm.chunks, 12);
    pool_refuse(&f, 6 * GRANULE, &stream_a, SPW_E_LIMIT);
    f.vm.immediate = true;
    fake_vm_complete(&f.vm);
    spw_pool_synchronized(f.pool, NULL, spw_pool_clock(f.pool));
    pool_check(&f);
    (void)spw_pool_trim(f.pool, 0); /* what the refused request has created */
    assert_int_equal(f.vm.chunks, 6);
    pool_free(&f, other, &stream_a);
    (void)pool_alloc(&f, 12 * GRANULE, &stream_a);
    pool_close(&f);
}

/* Free memory beside a block in its granules serves no new block; the granule is released with the
 * last block on it. */
static void test_shared_granule(void **state)
{
    uint64_t before, block, after, other;
    struct pool_fixture f;

    open_tiers(&f, 1);
    before = pool_alloc(&f, 4096, &stream_a);
    block = pool_alloc(&f, 4096, &stream_a);
    after = pool_alloc(&f, 4096, &stream_a);
    assert_int_equal(before / GRANULE, after / GRANULE);
    assert_int_equal(export(&f, block), SPW_OK);
    pool_free(&f, after, &stream_a);
    other = pool_alloc(&f, 4096, &stream_a);
    assert_int_not_equal(other / GRANULE, block / GRANULE);
    pool_free(&f, block, &stream_a);
    (void)spw_pool_trim(f.pool, 0);
    pool_check(&f);
    assert_int_equal(f.vm.chunks, 2);
    assert_true(fake_vm_usable(&f.vm, before, 4096));
    pool_free(&f, before, &stream_a);
    pool_free(&f, other, &stream_a);
    (void)spw_pool_trim(f.pool, 0);
    pool_check(&f);
    assert_int_equal(f.vm.chunks, 0);
    /* The addresses can be used again. */
    assert_int_equal(pool_alloc(&f, 4096, &stream_a) / GRANULE, block / GRANULE);
    pool_close(&f);
}

static void test_what_cannot_be_exported(void **state)
{
    const struct spw_block_attributes registered = {.fix = SPW_FIXED_SHARED};
    struct pool_fixture f;
    uint64_t block;
    bool done;

    open_tiers(&f, 1);
    block = pool_alloc(&f, 2 * GRANULE, &stream_a);
    assert_int_equal(spw_pool_export_begin(f.pool, block, id_of(&f, block) + 1, &done),
                     SPW_E_NOT_OURS);
    assert_int_equal(spw_pool_set_attributes(f.pool, block, 1, &registered), 1);
    assert_int_equal(export(&f, block), SPW_E_INVAL);
    pool_free(&f, block, &stream_a);
    /* There is no granule for a copy. */
    block = pool_alloc(&f, DEVICE * GRANULE, &stream_a);
    fake_vm_write(&f.vm, block, DEVICE * GRANULE, 50);
    assert_int_equal(export(&f, block), SPW_E_LIMIT);
    pool_expect(&f, block, DEVICE, 50, 0);
    pool_free(&f, block, &stream_a);
    /* One is enough. */
    block = pool_alloc(&f, (DEVICE - 1) * GRANULE, &stream_a);
    fake_vm_write(&f.vm, block, (DEVICE - 1) * GRANULE, 60);
    assert_int_equal(export(&f, block), SPW_OK);
    pool_expect(&f, block, DEVICE - 1, 60, 0);
    f.vm.capturing = true;
    pool_free(&f, block, &stream_a);
    f.vm.capturing = false;
    pool_close(&f);
}

/* The driver unmaps nothing that has no access. */
static bool keeps_inaccessible;

/* Blocks that share granules, one of them spilled: content stays, and nothing is left, whatever
 * fails. */
static bool run_with_faults(int fail_call, size_t fail_after, size_t fail_more)
{
    uint64_t blocks[3], sizes[3] = {GRANULE / 2 * 3, GRANULE * 3, GRANULE};
    struct pool_fixture f;
    bool reached;

    open_tiers(&f, 4);
    for (uint64_t i = 0; i < 3; i++) {
        blocks[i] = pool_alloc(&f, sizes[i], &stream_a);
    }
    for (uint64_t i = 0; i < 3; i++) {
        fake_vm_write(&f.vm, blocks[i] + sizes[i] - GRANULE / 2, 1, 100 * (i + 1));
    }
    (void)spill(&f, 2);
    f.vm.fail_call = fail_call;
    f.vm.fail_after = fail_after;
    f.vm.fail_more = fail_more;
    f.vm.keeps_inaccessible = keeps_inaccessible;
    for (int i = 0; i < 4 && export(&f, blocks[1]) != SPW_OK; i++) {
        (void)spw_pool_move_remap_lost(f.pool);
    }
    reached = fail_call >= 0 && f.vm.calls[fail_call] > fail_after;
    f.vm.fail_call = -1;
    f.vm.keeps_inaccessible = false;
    assert_int_equal(spw_pool_move_remap_lost(f.pool), SPW_OK);
    assert_int_equal(export(&f, blocks[1]), SPW_OK);
    for (uint64_t i = 0; i < 3; i++) {
        assert_true(fake_vm_usable(&f.vm, blocks[i], sizes[i]));
        assert_int_equal(
            fake_vm_differs(&f.vm, blocks[i] + sizes[i] - GRANULE / 2, 1, 100 * (i + 1)), 0);
        pool_free(&f, blocks[i], &stream_a);
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
    for (size_t more = 0; more < 3; more++) {
        sweep(FAKE_CREATE, more);
        sweep(FAKE_MAP, more);
        sweep(FAKE_ACCESS, more);
        sweep(FAKE_COPY, more);
        sweep(FAKE_FENCE, more);
        sweep(FAKE_QUERY, more);
    }
    sweep(FAKE_UNMAP, 0);
}

/* New chunks that are mapped and refused access stay, when the driver does not unmap them either.
 */
static void test_two_refusals(void **state)
{
    keeps_inaccessible = true;
    for (size_t more = 0; more < 12; more++) {
        sweep(FAKE_MAP, more);
        sweep(FAKE_ACCESS, more);
    }
    keeps_inaccessible = false;
}

/* The block ends before its new chunks have access: they are released when they have it. */
static void test_freed_while_lost(void **state)
{
    struct pool_fixture f;
    uint64_t block, bytes;

    open_tiers(&f, 4);
    block = pool_alloc(&f, 6 * GRANULE, &stream_a);
    f.vm.keeps_inaccessible = true;
    for (f.vm.fail_after = 0; f.vm.fail_after < 20; f.vm.fail_after++) {
        size_t after = f.vm.fail_after;

        f.vm.fail_call = FAKE_ACCESS;
        (void)export(&f, block);
        f.vm.fail_call = -1;
        f.vm.fail_after = after;
        if (spw_pool_move_lost(f.pool, &bytes) != 0) {
            break;
        }
    }
    assert_true(bytes > 0);
    f.vm.keeps_inaccessible = false;
    pool_free(&f, block, &stream_a);
    block = pool_alloc(&f, 6 * GRANULE, &stream_a);
    pool_free(&f, block, &stream_a);
    assert_int_equal(spw_pool_move_remap_lost(f.pool), SPW_OK);
    pool_check(&f);
    pool_close_empty(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_content_stays),
        cmocka_unit_test(test_spilled),
        cmocka_unit_test(test_neighbours_in_a_chunk),
        cmocka_unit_test(test_neighbours_on_the_host),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_shared_granule),
        cmocka_unit_test(test_what_cannot_be_exported),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_two_refusals),
        cmocka_unit_test(test_freed_while_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
