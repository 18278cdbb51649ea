/* A pool whose memory others take of as well: nothing is taken for a request that cannot be served,
 * and what the pool has already can be used however little is left. */
#include "pool/pool.h"
#include "pool_fixture.h"

enum { MEMORY = 8 };

static struct pool_fixture f;

static void open_bounded(uint64_t limit)
{
    pool_open_as(&f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                               .arena_bytes = 64 * (uint64_t)GRANULE,
                                               .limit_bytes = limit * GRANULE,
                                               .bounded = true});
    f.vm.memory = MEMORY;
}

static enum spw_err charge(uint64_t granules)
{
    enum spw_err err = spw_pool_charge(f.pool, granules * GRANULE, 0, /* beyond */ false);

    pool_check(&f);
    return err;
}

static void test_refused_at_once(void **state)
{
    open_bounded(64);
    (void)pool_alloc(&f, 3 * GRANULE, &stream_a);
    pool_refuse(&f, 6 * GRANULE, &stream_a, SPW_E_NO_MEMORY);
    assert_int_equal(f.vm.chunks, 3);
    f.vm.others = MEMORY - 3;
    pool_refuse(&f, GRANULE, &stream_a, SPW_E_NO_MEMORY);
    f.vm.others = MEMORY; /* they have more than there is */
    pool_refuse(&f, GRANULE, &stream_a, SPW_E_NO_MEMORY);
    assert_int_equal(f.vm.chunks, 3);
    f.vm.others = 0;
    (void)pool_alloc(&f, (MEMORY - 3) * GRANULE, &stream_a);
    assert_int_equal(f.vm.chunks, MEMORY);
    pool_close(&f);
}

/* The limit of the user still holds. */
static void test_limit(void **state)
{
    open_bounded(4);
    pool_refuse(&f, 5 * GRANULE, &stream_a, SPW_E_LIMIT);
    (void)pool_alloc(&f, 4 * GRANULE, &stream_a);
    pool_refuse(&f, GRANULE, &stream_a, SPW_E_LIMIT);
    pool_close(&f);
}

static void test_own_memory_stays_usable(void **state)
{
    uint64_t blocks[3];

    open_bounded(64);
    f.vm.immediate = true;
    for (int i = 0; i < 3; i++) {
        blocks[i] = pool_alloc(&f, 2 * GRANULE, &stream_a);
    }
    pool_free(&f, blocks[0], &stream_a);
    pool_free(&f, blocks[2], &stream_a);
    f.vm.others = MEMORY;
    (void)pool_alloc(&f, 4 * GRANULE, &stream_b); /* of both, which are apart */
    assert_int_equal(f.vm.chunks, 6);
    pool_refuse(&f, GRANULE, &stream_a, SPW_E_NO_MEMORY);
    pool_close(&f);
}

/* Others than the pool take less than the whole: the pool adds what it lacks. */
static void test_steals_and_grows(void **state)
{
    uint64_t block;

    open_bounded(64);
    f.vm.immediate = true;
    block = pool_alloc(&f, 3 * GRANULE, &stream_a);
    (void)pool_alloc(&f, GRANULE, &stream_a);
    pool_free(&f, block, &stream_a);
    f.vm.others = 2;
    (void)pool_alloc(&f, 5 * GRANULE, &stream_a); /* 3 of its own, and the 2 that are left */
    assert_int_equal(f.vm.chunks, 6);
    pool_close(&f);
}

static void test_charges(void **state)
{
    uint64_t block;

    open_bounded(64);
    f.vm.immediate = true;
    block = pool_alloc(&f, 4 * GRANULE, &stream_a);
    assert_int_equal(charge(5), SPW_E_LIMIT);
    assert_int_equal(charge(4), SPW_OK);
    f.vm.others = 4; /* what was charged */
    assert_int_equal(charge(1), SPW_E_LIMIT);
    pool_free(&f, block, &stream_a);
    assert_int_equal(charge(3), SPW_OK); /* the pool gives back */
    assert_int_equal(f.vm.chunks, 1);
    spw_pool_discharge(f.pool, 7 * GRANULE, 0);
    pool_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_at_once),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_own_memory_stays_usable),
        cmocka_unit_test(test_steals_and_grows),
        cmocka_unit_test(test_charges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
