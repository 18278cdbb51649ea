/* Where chunks come from, call by call: how far the pool grows before it steals, what shortage
 * changes, and what is made for lazy blocks. */
#include "pool_fixture.h"

enum { ROOMY = 1 << 20 /* granules: no limit in these tests */ };

static struct pool_fixture f;

static uint64_t committed(void)
{
    return spw_counter_get(&f.counters.committed_bytes) / GRANULE;
}

static uint64_t steals(void)
{
    return spw_counter_get(&f.counters.steals);
}

/* ---- creating ---- */

/* An error that is not for want of memory ends the allocation at once. */
static void test_error_of_the_driver(void **state)
{
    pool_open_small(&f, 64, 64, 1000);
    f.vm.refusal = SPW_E_DRIVER - 2;
    f.vm.fail_call = FAKE_CREATE;
    f.vm.fail_after = 1;
    pool_refuse(&f, 4 * GRANULE, &stream_a, SPW_E_DRIVER - 2);
    assert_int_equal(f.vm.calls[FAKE_CREATE], 2);
    assert_int_equal(committed(), 1); /* what was created is kept */
    (void)pool_alloc(&f, 4 * GRANULE, &stream_a);
    assert_int_equal(committed(), 4);
    pool_close(&f);
}

/* Opens a pool that may create chunks of up to 32 granules, as it has enough of them already. */
static void open_chunks(uint32_t growth)
{
    enum { LARGEST = 32, BASE = 512 * LARGEST };

    pool_open_as(&f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                               .chunk_bytes = (uint64_t)LARGEST * GRANULE,
                                               .arena_bytes = 16ull * BASE * GRANULE,
                                               .limit_bytes = 4ull * BASE * GRANULE,
                                               .growth_permille = growth});
    (void)pool_alloc(&f, (uint64_t)BASE * GRANULE, &stream_b);
}

/* A size that the device refuses is not asked for again; each smaller one is tried. */
static void test_sizes_that_the_device_refuses(void **state)
{
    open_chunks(0);
    f.vm.most_chunks = f.vm.chunks + 23;
    f.vm.calls[FAKE_CREATE] = 0;
    pool_refuse(&f, 24 * GRANULE, &stream_a, SPW_E_NO_MEMORY);
    /* 16, not 8, 4, not 4, 2, not 2, 1, not 1 */
    assert_int_equal(f.vm.calls[FAKE_CREATE], 8);
    assert_int_equal(f.vm.chunks, f.vm.most_chunks);
    pool_close(&f);
}

/* Spare chunks are used before others are created. */
static void test_spare_chunks_count(void **state)
{
    uint64_t before;

    open_chunks(100);
    pool_leave_spare(&f, 1);
    before = committed();
    f.vm.calls[FAKE_CREATE] = 0;
    (void)pool_alloc(&f, 2 * GRANULE, &stream_a);
    assert_int_equal(committed(), before + 1);
    assert_int_equal(f.vm.calls[FAKE_CREATE], 1);
    pool_close(&f);
}

/* ---- growing before stealing ---- */

/* Leaves two runs of `run` free granules, none of them longer, in a pool whose peak were 10000. */
static void fragment(uint32_t growth, size_t run)
{
    uint64_t low, high;

    pool_open_small(&f, ROOMY, ROOMY, growth);
    low = pool_alloc(&f, run * GRANULE, &stream_a);
    (void)pool_alloc(&f, GRANULE, &stream_a);
    high = pool_alloc(&f, run * GRANULE, &stream_a);
    (void)pool_alloc(&f, (10000 - 1 - 2 * run) * GRANULE, &stream_a);
    pool_free(&f, low, &stream_a);
    pool_free(&f, high, &stream_a);
    spw_pool_synchronized(f.pool, NULL, spw_pool_clock(f.pool));
    assert_int_equal(committed(), 10000);
}

/* A fifth of what may be kept beyond the peak is created before the first steal, to the byte. */
static void test_first_share_of_the_allowance(void **state)
{
    fragment(1000, 1999);
    (void)pool_alloc(&f, (size_t)2000 * GRANULE, &stream_a);
    assert_int_equal(steals(), 0);
    assert_int_equal(committed(), 12000);
    pool_close(&f);
    fragment(1000, 2000);
    (void)pool_alloc(&f, (size_t)2001 * GRANULE, &stream_a);
    assert_int_equal(steals(), 1);
    assert_int_equal(committed(), 12000);
    pool_close(&f);
}

/* The least allowance is 16 granules, and 0 is none. */
static void test_least_allowance(void **state)
{
    fragment(1, 15);
    (void)pool_alloc(&f, 16 * GRANULE, &stream_a);
    assert_int_equal(steals(), 0);
    pool_close(&f);
    fragment(1, 16);
    (void)pool_alloc(&f, 17 * GRANULE, &stream_a);
    assert_int_equal(steals(), 1);
    assert_int_equal(committed(), 10016);
    pool_close(&f);
    fragment(0, 15);
    (void)pool_alloc(&f, 16 * GRANULE, &stream_a);
    assert_int_equal(steals(), 16);
    assert_int_equal(committed(), 10000);
    pool_close(&f);
}

/* Half of what has been stolen may be created besides, as far as the allowance goes. */
static void test_share_of_what_was_stolen(void **state)
{
    fragment(1000, 2000);
    (void)pool_alloc(&f, (size_t)2401 * GRANULE, &stream_a); /* creates 2000 */
    assert_int_equal(steals(), 401);
    assert_int_equal(committed(), 12000);
    spw_pool_trim(f.pool, 0);
    assert_int_equal(committed(), 8401); /* what is live */
    pool_close(&f);
}

/* A block that a placement put on the host needs no chunks of the device. */
static void test_placed_on_the_host(void **state)
{
    const struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .on_host = true};
    const struct spw_request request = {
        .bytes = 4 * GRANULE, .stream = &stream_a, .placement = &placement};
    struct spw_result result;
    uint64_t first;

    pool_open_small(&f, 256, 64, 0);
    spw_pool_set_host_limit(f.pool, 16 * GRANULE);
    assert_int_equal(spw_pool_alloc(f.pool, &request, &result), SPW_OK);
    assert_int_equal(committed(), 0);
    first = pool_alloc(&f, 3 * GRANULE, &stream_a);
    (void)pool_alloc(&f, GRANULE, &stream_a);
    pool_free(&f, first, &stream_a);
    spw_pool_synchronized(f.pool, NULL, spw_pool_clock(f.pool));
    (void)pool_alloc(&f, 4 * GRANULE, &stream_a);
    assert_int_equal(steals(), 3);
    assert_int_equal(committed(), 5);
    pool_close(&f);
}

/* ---- stealing ---- */

/* Idle memory is stolen first; as long as there is enough, no fence is recorded for the rest. */
static void test_idle_memory_is_stolen_first(void **state)
{
    uint64_t idle, own;
    size_t fences;

    pool_open_small(&f, 256, 256, 0);
    idle = pool_alloc(&f, 3 * GRANULE, &stream_a);
    (void)pool_alloc(&f, GRANULE, &stream_a);
    own = pool_alloc(&f, GRANULE, &stream_c);
    pool_free(&f, idle, &stream_a);
    spw_pool_synchronized(f.pool, NULL, spw_pool_clock(f.pool));
    pool_free(&f, own, &stream_c);
    fences = f.vm.calls[FAKE_FENCE];
    (void)pool_alloc(&f, 4 * GRANULE, &stream_c);
    assert_int_equal(steals(), 3);
    assert_int_equal(spw_counter_get(&f.counters.steal_batches), 1);
    assert_int_equal(f.vm.calls[FAKE_FENCE], fences);
    pool_close(&f);
}

/* Looking for free memory where there is none is no steal. */
static void test_nothing_to_steal(void **state)
{
    uint64_t busy;

    pool_open_small(&f, 256, 256, 0);
    busy = pool_alloc(&f, 3 * GRANULE, &stream_a);
    (void)pool_alloc(&f, GRANULE, &stream_a);
    pool_free(&f, busy, &stream_a);
    (void)pool_alloc(&f, 4 * GRANULE, &stream_a);
    assert_int_equal(steals(), 0);
    assert_int_equal(spw_counter_get(&f.counters.steal_batches), 0);
    pool_close(&f);
}

/* The number of fences that freeing a block of so many granules records. */
static size_t fences_of_a_free(size_t granules)
{
    uint64_t address = pool_alloc(&f, granules * GRANULE, &stream_b);
    size_t before = f.vm.calls[FAKE_FENCE];

    pool_free(&f, address, &stream_b);
    return f.vm.calls[FAKE_FENCE] - before;
}

/* Steals once: memory is short from now on. */
static void become_short(void)
{
    uint64_t first = pool_alloc(&f, 3 * GRANULE, &stream_a);

    (void)pool_alloc(&f, GRANULE, &stream_a);
    pool_free(&f, first, &stream_a);
    spw_pool_synchronized(f.pool, NULL, spw_pool_clock(f.pool));
    (void)pool_alloc(&f, 4 * GRANULE, &stream_a);
    assert_int_equal(steals(), 3);
}

/* While memory is short, a fence is recorded for every 64 MiB that are freed on a stream. */
static void test_early_fences(void **state)
{
    pool_open_small(&f, 1024, 1024, 0);
    assert_int_equal(fences_of_a_free(32), 0);
    pool_close(&f);
    pool_open_small(&f, 1024, 1024, 0);
    become_short();
    assert_int_equal(fences_of_a_free(31), 0);
    assert_int_equal(fences_of_a_free(1), 1);
    assert_int_equal(fences_of_a_free(32), 1);
    pool_close(&f);
}

/* That ends after so many frees. */
static void test_early_fences_end(void **state)
{
    enum { FREES = 256 };

    for (int before = FREES - 1; before <= FREES; before++) {
        uint64_t last;
        size_t fences;

        pool_open_small(&f, 1024, 1024, 0);
        become_short();
        last = pool_alloc(&f, 32 * GRANULE, &stream_b);
        for (int i = 0; i < before; i++) {
            pool_free(&f, pool_alloc(&f, GRANULE, &stream_a), &stream_a);
        }
        fences = f.vm.calls[FAKE_FENCE];
        pool_free(&f, last, &stream_b);
        assert_int_equal(f.vm.calls[FAKE_FENCE] - fences, before < FREES ? 1 : 0);
        pool_close(&f);
    }
}

/* ---- waiting ---- */

/* Where only a wait for the whole device completes fences, a loop of cuMemAlloc and cuMemFree grows
 * rather than waits. */
static void test_no_wait_for_the_whole_device(void **state)
{
    pool_open_small(&f, 256, 256, 0);
    f.vm.defers = true;
    for (int i = 1; i <= 3; i++) {
        pool_free(&f, pool_alloc(&f, 4 * GRANULE, NULL), NULL);
        assert_int_equal(committed(), 4 * i);
    }
    assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], 0);
    pool_close(&f);
}

/* A wait is short if there is another way to get memory: a host tier, or one that may be opened. */
static void test_short_waits(void **state)
{
    const struct {
        uint64_t host_limit;
        bool untried, is_short;
    } rows[] = {{0, false, false}, {1, false, true}, {0, true, true}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        pool_open_as(&f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                                   .arena_bytes = 64ull * GRANULE,
                                                   .limit_bytes = 4ull * GRANULE,
                                                   .host_limit_bytes = rows[i].host_limit,
                                                   .host_untried = rows[i].untried});
        pool_free(&f, pool_alloc(&f, 4 * GRANULE, NULL), NULL);
        (void)pool_alloc(&f, 4 * GRANULE, NULL);
        assert_int_equal(f.vm.calls[FAKE_WAIT_SOON], rows[i].is_short ? 1 : 0);
        assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], rows[i].is_short ? 0 : 1);
        pool_close(&f);
    }
}

/* ---- lazy blocks ---- */

static _Atomic uint64_t to_commit;

static void open_lazy(uint64_t limit, uint64_t host_limit)
{
    to_commit = 0;
    pool_open_as(&f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                               .arena_bytes = 256ull * GRANULE,
                                               .limit_bytes = limit * GRANULE,
                                               .host_limit_bytes = host_limit * GRANULE,
                                               .to_commit = &to_commit});
}

static uint64_t alloc_lazy(size_t granules)
{
    const struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .lazy = true};
    const struct spw_request request = {
        .bytes = granules * GRANULE, .stream = &stream_c, .placement = &placement};
    struct spw_result result;

    assert_int_equal(spw_pool_alloc(f.pool, &request, &result), SPW_OK);
    pool_check(&f);
    assert_int_equal(to_commit, 1);
    return result.address;
}

static void commit(bool spilling, enum spw_err expected)
{
    assert_int_equal(spw_pool_commit(f.pool, spilling), expected);
    pool_check(&f);
}

/* Memory of the host that is free and whose work is complete backs a lazy block. */
static void test_lazy_block_on_free_memory_of_the_host(void **state)
{
    uint64_t spilled = 0, host_bytes, lazy;

    open_lazy(4, 4);
    (void)pool_alloc(&f, 4 * GRANULE, &stream_a);
    assert_int_equal(pool_try_anywhere(&f, 4 * GRANULE, &stream_b, &spilled, &host_bytes), SPW_OK);
    assert_int_equal(f.vm.host_chunks, 4);
    pool_free(&f, spilled, &stream_b);
    fake_vm_complete(&f.vm);
    f.vm.immediate = true;
    lazy = alloc_lazy(4);
    commit(/* spilling */ true, SPW_OK);
    assert_int_equal(fake_vm_on_host(&f.vm, lazy, 4 * GRANULE), 4);
    assert_int_equal(f.vm.host_chunks, 4);
    pool_close(&f);
}

/* A lazy block waits for nothing as long as chunks can be had. */
static void test_lazy_block_does_not_wait(void **state)
{
    open_lazy(8, 0);
    pool_free(&f, pool_alloc(&f, GRANULE, &stream_b), &stream_b);
    (void)alloc_lazy(2);
    commit(/* spilling */ false, SPW_OK);
    assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], 0);
    assert_int_equal(f.vm.calls[FAKE_WAIT_SOON], 0);
    assert_int_equal(to_commit, 0);
    pool_close(&f);
}

/* At the limit it waits for work that is pending: briefly, if there is a host tier. */
static void test_lazy_block_waits_at_the_limit(void **state)
{
    for (uint64_t host_limit = 0; host_limit < 2; host_limit++) {
        open_lazy(4, host_limit);
        pool_free(&f, pool_alloc(&f, 4 * GRANULE, &stream_b), &stream_b);
        (void)alloc_lazy(4);
        commit(/* spilling */ false, SPW_OK);
        assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], host_limit == 0 ? 1 : 0);
        assert_int_equal(f.vm.calls[FAKE_WAIT_SOON], host_limit == 0 ? 0 : 1);
        pool_close(&f);
    }
}

/* A refused wait is not repeated: the limit refuses, and the host is the way that is left. */
static void test_lazy_block_may_not_wait(void **state)
{
    open_lazy(4, 4);
    pool_free(&f, pool_alloc(&f, 4 * GRANULE, &stream_b), &stream_b);
    (void)alloc_lazy(4);
    f.vm.impatient = true;
    commit(/* spilling */ false, SPW_E_LIMIT);
    assert_int_equal(f.vm.calls[FAKE_WAIT_SOON], 1);
    assert_int_equal(to_commit, 1);
    commit(/* spilling */ true, SPW_OK);
    assert_int_equal(f.vm.host_chunks, 4);
    pool_close(&f);
}

/* The limit refuses more than it allows, and the device what it does not have. */
static void test_lazy_block_has_no_room(void **state)
{
    open_lazy(8, 0);
    (void)alloc_lazy(4);
    f.vm.most_chunks = 3;
    commit(/* spilling */ false, SPW_E_NO_MEMORY);
    f.vm.most_chunks = 0;
    spw_pool_set_limit(f.pool, 3 * GRANULE);
    commit(/* spilling */ false, SPW_E_LIMIT);
    spw_pool_set_limit(f.pool, 4 * GRANULE);
    commit(/* spilling */ false, SPW_OK);
    assert_int_equal(committed(), 4);
    pool_close(&f);
}

static void grow_device(struct fake_vm *vm)
{
    vm->most_chunks = 8;
}

/* A device that was full is asked again after a wait, in which other programs may free. */
static void test_lazy_block_asks_again(void **state)
{
    open_lazy(8, 0);
    f.vm.most_chunks = 4;
    pool_free(&f, pool_alloc(&f, 4 * GRANULE, &stream_b), &stream_b);
    (void)alloc_lazy(6);
    f.vm.on_finished = grow_device;
    commit(/* spilling */ false, SPW_OK);
    assert_int_equal(committed(), 6);
    pool_close(&f);
}

/* Memory that is mapped, refused access and not unmapped again does not count as the block's until
 * it has access. */
static void test_lazy_block_without_access(void **state)
{
    uint64_t lazy;

    open_lazy(8, 0);
    lazy = alloc_lazy(6);
    f.vm.keeps_inaccessible = true;
    for (size_t time = 0; time < 3; time++) {
        f.vm.fail_call = FAKE_ACCESS;
        f.vm.fail_after = 0;
        assert_int_not_equal(spw_pool_commit(f.pool, /* spilling */ false), SPW_OK);
        pool_check(&f);
        assert_int_equal(to_commit, 1);
    }
    f.vm.fail_call = -1;
    commit(/* spilling */ false, SPW_OK);
    assert_int_equal(to_commit, 0);
    assert_true(fake_vm_usable(&f.vm, lazy, 6 * GRANULE));
    f.vm.keeps_inaccessible = false;
    fake_vm_complete(&f.vm);
    pool_free(&f, lazy, &stream_c);
    pool_refuse(&f, 9 * GRANULE, &stream_c, SPW_E_LIMIT);
    /* Nothing of it is out of use. */
    assert_int_equal(pool_alloc(&f, 6 * GRANULE, &stream_c), lazy);
    pool_close(&f);
}

/* Nor does another block get that memory when the lazy one is freed. */
static void test_lazy_block_freed_without_access(void **state)
{
    uint64_t lazy, other;

    open_lazy(8, 0);
    lazy = alloc_lazy(2);
    f.vm.keeps_inaccessible = true;
    f.vm.fail_call = FAKE_ACCESS;
    assert_int_not_equal(spw_pool_commit(f.pool, /* spilling */ false), SPW_OK);
    f.vm.keeps_inaccessible = false;
    f.vm.fail_call = -1;
    pool_free(&f, lazy, &stream_c);
    assert_int_equal(to_commit, 0);
    other = pool_alloc(&f, 6 * GRANULE, &stream_c);
    assert_true(fake_vm_usable(&f.vm, other, 6 * GRANULE));
    pool_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_of_the_driver),
        cmocka_unit_test(test_sizes_that_the_device_refuses),
        cmocka_unit_test(test_spare_chunks_count),
        cmocka_unit_test(test_first_share_of_the_allowance),
        cmocka_unit_test(test_least_allowance),
        cmocka_unit_test(test_share_of_what_was_stolen),
        cmocka_unit_test(test_placed_on_the_host),
        cmocka_unit_test(test_idle_memory_is_stolen_first),
        cmocka_unit_test(test_nothing_to_steal),
        cmocka_unit_test(test_early_fences),
        cmocka_unit_test(test_early_fences_end),
        cmocka_unit_test(test_no_wait_for_the_whole_device),
        cmocka_unit_test(test_short_waits),
        cmocka_unit_test(test_lazy_block_on_free_memory_of_the_host),
        cmocka_unit_test(test_lazy_block_does_not_wait),
        cmocka_unit_test(test_lazy_block_waits_at_the_limit),
        cmocka_unit_test(test_lazy_block_may_not_wait),
        cmocka_unit_test(test_lazy_block_has_no_room),
        cmocka_unit_test(test_lazy_block_asks_again),
        cmocka_unit_test(test_lazy_block_without_access),
        cmocka_unit_test(test_lazy_block_freed_without_access),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
