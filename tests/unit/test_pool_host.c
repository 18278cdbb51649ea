/* The process runs out of memory: every allocation of the pool's records fails once,
 * one run each. */
#include "malloc_faults.h"
#include "pool_fixture.h"

#include <stdlib.h>

enum { BLOCKS = 3000, STREAMS = 40, MOVED = 4 * GRANULE, DEVICE = 16, HOST = 16 };

/* Allocates and frees until the records have grown several times. True if the fault was reached. */
static bool run(long after)
{
    static uint64_t blocks[BLOCKS];
    struct pool_fixture f;
    bool met;

    pool_open(&f, 0);
    f.vm.immediate = true;
    calls_until_failure = after + 1;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        struct spw_stream stream = {.id = 1 + i % STREAMS};
        uint64_t bytes = i % 64 == 0 ? 3 * GRANULE : 4096 + i % 16 * 4096;
        enum spw_err err;

        blocks[i] = 0;
        err = pool_try(f.pool, bytes, i % 7 == 0 ? NULL : &stream, NULL, &blocks[i]);
        if (err != SPW_OK && err != SPW_E_METADATA_NOMEM) {
            fail_msg("error %d", (int)err);
        }
        if (i % 3 != 0 && blocks[i / 2] != 0) {
            assert_int_equal(spw_pool_free(f.pool, blocks[i / 2], &stream), SPW_OK);
            blocks[i / 2] = 0;
        }
        if (i % 100 == 0 || err != SPW_OK) {
            pool_check(&f);
            (void)spw_pool_trim(f.pool, 4 * GRANULE);
            pool_check(&f);
        }
    }
    met = calls_until_failure == 0;
    calls_until_failure = 0;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        if (blocks[i] != 0) {
            assert_int_equal(spw_pool_free(f.pool, blocks[i], NULL), SPW_OK);
        }
    }
    (void)spw_pool_trim(f.pool, 0);
    assert_int_equal(f.vm.chunks, 0);
    pool_close(&f);
    return met;
}

static void test_every_record_fails_once(void **state)
{
    long after = 0;

    while (run(after)) {
        after++;
    }
    assert_true(after > 10);
}

static void test_pool_cannot_be_created(void **state)
{
    struct spw_pool_config config = {
        .granule_bytes = GRANULE, .arena_bytes = 16 * GRANULE, .limit_bytes = GRANULE};
    struct spw_counters counters = {0};
    enum spw_err err = SPW_E_METADATA_NOMEM;
    struct spw_pool *pool = NULL;

    for (long after = 0; err != SPW_OK; after++) {
        struct fake_vm vm;

        fake_vm_init(&vm);
        calls_until_failure = after + 1;
        err = spw_pool_create(&config, &vm.seam, &counters, &pool);
        calls_until_failure = 0;
        assert_true(err == SPW_OK || err == SPW_E_METADATA_NOMEM);
        spw_pool_destroy(err == SPW_OK ? pool : NULL);
        fake_vm_fini(&vm);
    }
}

/* ---- moves and exports ---- */

static void move(struct pool_fixture *f, enum spw_tier to)
{
    const struct spw_move_request request = {.to = to, .bytes = MOVED};
    uint64_t bytes;

    if (spw_pool_move_begin(f->pool, &request, &f->move) == SPW_OK) {
        if (spw_pool_move_copy(f->pool, f->move, true) == SPW_OK &&
            spw_pool_move_poll(f->pool, f->move) == SPW_OK &&
            spw_pool_move_drain(f->pool, f->move) == SPW_OK) {
            (void)spw_pool_move_commit(f->pool, f->move, &bytes);
        }
        (void)spw_pool_move_end(f->pool, f->move);
    }
    pool_check(f);
}

static enum spw_err export_step(struct pool_fixture *f, const struct spw_block *block,
                                bool *ret_done)
{
    enum spw_err err = spw_pool_export_begin(f->pool, block->address, block->id, ret_done);

    if (err == SPW_OK && !*ret_done) {
        err = spw_pool_export_drain(f->pool);
        err = err == SPW_OK ? spw_pool_export_copy(f->pool) : err;
        err = err == SPW_OK ? spw_pool_export_poll(f->pool) : err;
        err = err == SPW_OK ? spw_pool_export_commit(f->pool) : err;
        spw_pool_export_end(f->pool);
    }
    pool_check(f);
    return err;
}

static enum spw_err export_block(struct pool_fixture *f, uint64_t address)
{
    enum spw_err err = SPW_OK;
    struct spw_block block;
    bool done = false;

    assert_true(spw_pool_find(f->pool, address, &block));
    while (err == SPW_OK && !done) {
        err = export_step(f, &block, &done);
    }
    return err;
}

/* Moves a block to the host and back, and exports it; what did not succeed is done again then. True
 * if the fault was reached. */
static bool run_moves(long after)
{
    struct pool_fixture f;
    uint64_t address;
    enum spw_err err;
    bool moves, met;

    pool_open_small(&f, 256, DEVICE, 0);
    f.vm.immediate = true;
    assert_int_equal(spw_pool_open_host(f.pool, (uint64_t)HOST * GRANULE, &moves), SPW_OK);
    address = pool_alloc(&f, MOVED, &stream_a);
    fake_vm_write(&f.vm, address, MOVED, 100);
    calls_until_failure = after + 1;
    move(&f, SPW_TIER_HOST);
    move(&f, SPW_TIER_DEVICE);
    err = export_block(&f, address);
    met = calls_until_failure == 0;
    calls_until_failure = 0;
    assert_true(err == SPW_OK || (met && err == SPW_E_METADATA_NOMEM));
    assert_true(fake_vm_usable(&f.vm, address, MOVED));
    assert_int_equal(fake_vm_differs(&f.vm, address, MOVED, 100), 0);
    assert_int_equal(export_block(&f, address), SPW_OK);
    assert_int_equal(fake_vm_on_host(&f.vm, address, MOVED), 0);
    assert_int_equal(fake_vm_differs(&f.vm, address, MOVED, 100), 0);
    pool_free(&f, address, &stream_a);
    pool_close(&f);
    return met;
}

static void test_every_record_of_a_move_fails_once(void **state)
{
    long after = 0;

    while (run_moves(after)) {
        after++;
    }
    assert_true(after > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_record_fails_once),
        cmocka_unit_test(test_pool_cannot_be_created),
        cmocka_unit_test(test_every_record_of_a_move_fails_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
