/* The process runs out of memory: every allocation of the pool's records fails once,
 * one run each. */
#include "malloc_faults.h"
#include "pool_fixture.h"

#include <stdlib.h>

enum { BLOCKS = 3000, STREAMS = 40 };

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
        err = spw_pool_create(&config, &fake_vm_ops, &vm, &counters, &pool);
        calls_until_failure = 0;
        assert_true(err == SPW_OK || err == SPW_E_METADATA_NOMEM);
        spw_pool_destroy(err == SPW_OK ? pool : NULL);
        fake_vm_fini(&vm);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_record_fails_once),
        cmocka_unit_test(test_pool_cannot_be_created),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
