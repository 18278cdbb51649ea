/* The addresses of a pool by themselves: what is taken at a given one, and what is stolen. */
#include "pool_fixture.h"

#include "pool/space.h"
#include "pool/state.h"

/* Frees a block of `bytes`, so that its memory is idle. Returns its address. */
static uint64_t leave_idle(struct pool_fixture *f, uint64_t bytes)
{
    uint64_t address = pool_alloc(f, bytes, &stream_a);

    pool_free(f, address, &stream_a);
    spw_pool_synchronized(f->pool, NULL, spw_pool_clock(f->pool));
    return address;
}

/* Free memory of another heap is not taken, whatever its address. */
static void test_take_at_in_another_heap(void **state)
{
    struct pool_fixture f;
    const struct spw_stream_queue *queue;
    uint64_t small, large;

    pool_open(&f, 100);
    small = leave_idle(&f, 512);
    large = leave_idle(&f, 8 * GRANULE);
    queue = spw_pool_stream_queue_of(&f.pool->queues, &stream_a);
    assert_null(spw_pool_space_take_at(&f.pool->space, SPW_HEAP_LARGE, small, FAKE_GRANULE, queue));
    assert_null(spw_pool_space_take_at(&f.pool->space, SPW_HEAP_SMALL, large, 512, queue));
    pool_check(&f);
    assert_int_equal(pool_alloc(&f, 512, &stream_a), small);
    assert_int_equal(pool_alloc(&f, 8 * GRANULE, &stream_a), large);
    pool_close(&f);
}

/* What small blocks left is taken last, and counted like the rest. */
static void test_steal_from_all_heaps(void **state)
{
    struct pool_fixture f;

    pool_open(&f, 100);
    (void)leave_idle(&f, 512);
    (void)leave_idle(&f, 8 * GRANULE);
    assert_int_equal(spw_pool_space_steal_unkept(&f.pool->space, 8), 8);
    pool_check(&f);
    assert_int_equal(spw_pool_space_steal_unkept(&f.pool->space, 8), 1);
    assert_int_equal(spw_pool_space_steal_unkept(&f.pool->space, 8), 0);
    pool_check(&f);
    pool_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take_at_in_another_heap),
        cmocka_unit_test(test_steal_from_all_heaps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
