/* The addresses of a pool by themselves: what is taken at a given one, and what is stolen. */
#include "pool_fixture.h"

#include "pool/alloc/state.h"
#include "pool/space/space.h"

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

/* Memory that small blocks left is taken last, and counted like the rest. */
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

/* ---- neighbours ---- */

enum { QUARTER = GRANULE / 4, DEVICE = 8, HOST = 16 };

/* Moves a granule with the blocks on it. */
static void move_granule(struct pool_fixture *f, uint64_t block, uint64_t granule, enum spw_tier to)
{
    const struct spw_move_place place = {.block = block, .granule = granule, .to = to};
    const struct spw_move_request request = {.places = &place, .count = 1};
    uint64_t bytes;

    assert_int_equal(spw_pool_move_begin(f->pool, &request, &f->move), SPW_OK);
    assert_int_equal(spw_pool_move_copy(f->pool, f->move, /* after_all */ true), SPW_OK);
    assert_int_equal(spw_pool_move_commit(f->pool, f->move, &bytes), SPW_OK);
    assert_int_equal(bytes, GRANULE);
    assert_int_equal(spw_pool_move_end(f->pool, f->move), SPW_OK);
    pool_check(f);
}

/* Four blocks of so many quarters of a granule, with parts of the second and the third in one
 * granule. Those two are freed and idle while granule `moved` is on the host. Returns the first and
 * the last block. */
static void leave_neighbours(struct pool_fixture *f, const uint64_t quarters[4], size_t moved,
                             uint64_t ret_ends[2])
{
    uint64_t blocks[4], end = 0;
    bool moves;

    pool_open_small(f, 256, DEVICE, 0);
    assert_int_equal(spw_pool_open_host(f->pool, (uint64_t)HOST * GRANULE, &moves), SPW_OK);
    f->vm.immediate = true;
    for (size_t i = 0; i < 4; i++) {
        blocks[i] = pool_alloc(f, quarters[i] * QUARTER, &stream_a);
        assert_int_equal(blocks[i], blocks[0] + end);
        end += quarters[i] * QUARTER;
    }
    assert_int_equal(blocks[0] % GRANULE, 0);
    move_granule(f, blocks[moved == 0 ? 0 : 3], blocks[0] + moved * GRANULE, SPW_TIER_HOST);
    pool_free(f, blocks[1], &stream_a);
    pool_free(f, blocks[2], &stream_a);
    spw_pool_synchronized(f->pool, NULL, spw_pool_clock(f->pool));
    pool_check(f);
    ret_ends[0] = blocks[0];
    ret_ends[1] = blocks[3];
}

/* Free memory beside a block that comes back joins its neighbour. The granule they share can be
 * released then. */
static void test_neighbours_of_what_came_back(void **state)
{
    struct pool_fixture f;
    uint64_t ends[2];

    leave_neighbours(&f, (const uint64_t[]){3, 3, 3, 3}, 2, ends);
    assert_int_equal(spw_pool_trim(f.pool, 0), GRANULE); /* the spare one: they share theirs */
    move_granule(&f, ends[1], ends[0] + 2 * GRANULE, SPW_TIER_DEVICE);
    assert_int_equal(spw_pool_trim(f.pool, 0), GRANULE);
    pool_check(&f);
    pool_close(&f);
}

/* The same when it comes back from a file, to the device. */
static void test_neighbours_of_what_was_swapped(void **state)
{
    struct spw_swap_chunk chunk;
    struct pool_fixture f;
    uint64_t ends[2], at;

    leave_neighbours(&f, (const uint64_t[]){3, 3, 3, 3}, 2, ends);
    assert_int_equal(spw_pool_trim(f.pool, 0), GRANULE);
    at = ends[0] + 2 * GRANULE;
    assert_true(spw_pool_swap_find(f.pool, at, &chunk));
    assert_int_equal(chunk.address, at);
    assert_int_equal(spw_pool_swap_out(f.pool, &chunk), SPW_OK);
    assert_int_equal(spw_pool_swap_in(f.pool, &chunk, SPW_TIER_DEVICE), SPW_OK);
    pool_check(&f);
    assert_int_equal(spw_pool_trim(f.pool, 0), GRANULE);
    pool_close(&f);
}

/* Memory of the host at the beginning of free memory is allocated: the rest joins its neighbour. */
static void test_neighbours_of_what_is_taken(void **state)
{
    struct pool_fixture f;
    uint64_t ends[2], address, host_bytes;

    leave_neighbours(&f, (const uint64_t[]){3, 3, 1, 3}, 0, ends);
    (void)pool_alloc(&f, (DEVICE - 2) * GRANULE + 2 * QUARTER, &stream_a);
    assert_int_equal(pool_try_anywhere(&f, 2 * QUARTER, &stream_a, &address, &host_bytes), SPW_OK);
    assert_int_equal(address, ends[0] + 3 * QUARTER);
    assert_true(host_bytes > 0);
    pool_check(&f);
    pool_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take_at_in_another_heap),
        cmocka_unit_test(test_steal_from_all_heaps),
        cmocka_unit_test(test_neighbours_of_what_came_back),
        cmocka_unit_test(test_neighbours_of_what_was_swapped),
        cmocka_unit_test(test_neighbours_of_what_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
