/* The steps of an allocation, from a free extent that fits to addresses that run out. */
#include "pool_fixture.h"

#include "pool/pool.h"

static struct pool_fixture f;
static _Atomic uint64_t to_commit;

static uint64_t committed(void)
{
    return spw_counter_get(&f.counters.committed_bytes) / GRANULE;
}

static enum spw_err try_placed(uint64_t bytes, const struct spw_pool_placement *placement,
                               uint64_t *ret_address)
{
    const struct spw_request request = {
        .bytes = bytes, .stream = &stream_a, .placement = placement};
    struct spw_result result = {.address = *ret_address};
    enum spw_err err = spw_pool_alloc(f.pool, &request, &result);

    *ret_address = result.address;
    pool_check(&f);
    return err;
}

static uint64_t alloc_placed(uint64_t bytes, const struct spw_pool_placement *placement)
{
    uint64_t address = 0;

    assert_int_equal(try_placed(bytes, placement, &address), SPW_OK);
    return address;
}

/* Likewise in a pool that has nothing else; mappings are counted from here. */
static void leave_spare(size_t granules)
{
    pool_leave_spare(&f, granules);
    f.vm.calls[FAKE_MAP] = 0;
    assert_int_equal(committed(), granules);
}

/* ---- sizes ---- */

static void test_sizes(void **state)
{
    uint64_t small, large;

    pool_open_small(&f, 64, 1 << 20, 0);
    pool_refuse(&f, 0, &stream_a, SPW_E_INVAL);
    pool_refuse(&f, 64ull * GRANULE + 1, &stream_a, SPW_E_LIMIT);
    pool_refuse(&f, 64ull * GRANULE, &stream_a, SPW_E_NO_MEMORY); /* not in one run */
    small = pool_alloc(&f, 4096, &stream_a);
    large = pool_alloc(&f, 4097, &stream_a);
    assert_int_not_equal(small / GRANULE, large / GRANULE);
    assert_int_equal(spw_counter_get(&f.counters.live_bytes), 4096 + 4096 + 512);
    pool_close(&f);
}

/* ---- memory of other streams ---- */

/* Of the other streams' memory, the smallest extent that fits is taken, and of equal ones that of
 * the stream that came first. */
static void test_smallest_of_other_streams(void **state)
{
    const struct {
        size_t of_a, of_b;
        uint64_t waited;
    } rows[] = {{3, 5, 1}, {5, 3, 2}, {4, 4, 1}, {1, 4, 2}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t a, b, got;

        pool_open_small(&f, 256, 64, 0);
        a = pool_alloc(&f, rows[i].of_a * GRANULE, &stream_a);
        (void)pool_alloc(&f, GRANULE, &stream_c);
        b = pool_alloc(&f, rows[i].of_b * GRANULE, &stream_b);
        (void)pool_alloc(&f, GRANULE, &stream_c);
        pool_free(&f, a, &stream_a);
        pool_free(&f, b, &stream_b);
        got = pool_alloc(&f, 2 * GRANULE, &stream_c);
        assert_int_equal(got, rows[i].waited == 1 ? a : b);
        assert_int_equal(f.vm.waiting_stream, stream_c.id);
        assert_int_equal(f.vm.waited_stream, rows[i].waited);
        assert_int_equal(spw_counter_get(&f.counters.stream_waits), 1);
        pool_close(&f);
    }
}

/* If the stream cannot be made to wait, the memory is not taken. */
static void test_no_wait_no_memory(void **state)
{
    uint64_t a;

    pool_open_small(&f, 256, 64, 0);
    a = pool_alloc(&f, 2 * GRANULE, &stream_a);
    pool_free(&f, a, &stream_a);
    f.vm.fail_call = FAKE_WAIT_STREAM;
    assert_int_not_equal(pool_alloc(&f, 2 * GRANULE, &stream_c), a);
    assert_int_equal(spw_counter_get(&f.counters.stream_waits), 0);
    pool_close(&f);
}

/* ---- addresses ---- */

enum { ARENA = 16, LARGE = 14 /* granules of the heap of large blocks */ };

/* When addresses run out, memory that waits for work is taken in order, or waited for. */
static void test_addresses_run_out(void **state)
{
    uint64_t all;

    pool_open_small(&f, ARENA, 64, 0);
    all = pool_alloc(&f, LARGE * GRANULE, &stream_a);
    pool_refuse(&f, GRANULE, &stream_c, SPW_E_NO_MEMORY);
    pool_refuse(&f, GRANULE, NULL, SPW_E_NO_MEMORY);
    pool_free(&f, all, &stream_a);
    assert_int_equal(pool_alloc(&f, LARGE * GRANULE, &stream_c), all);
    assert_int_equal(spw_counter_get(&f.counters.stream_waits), 1);
    pool_free(&f, all, &stream_c);
    assert_int_equal(pool_alloc(&f, LARGE * GRANULE, NULL), all);
    assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], 2); /* for both streams */
    pool_close(&f);
}

/* Addresses for granules ahead are not insisted on. */
static void test_no_addresses_ahead(void **state)
{
    const struct spw_pool_placement lazy = {.limit_bytes = UINT64_MAX, .lazy = true};
    uint64_t address;

    to_commit = 0;
    pool_open_as(&f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                               .arena_bytes = ARENA * GRANULE,
                                               .limit_bytes = 64ull * GRANULE,
                                               .to_commit = &to_commit});
    leave_spare(LARGE);
    (void)alloc_placed((LARGE - 4) * GRANULE, &lazy);
    spw_pool_map_ahead(f.pool, LARGE);
    address = pool_alloc(&f, 4 * GRANULE, &stream_a); /* all that are left */
    assert_true(fake_vm_usable(&f.vm, address, 4 * GRANULE));
    pool_close(&f);
}

/* Of the spare chunks as many are mapped ahead as are not needed soon: all but the block's own and
 * two more. */
static void test_ahead(void **state)
{
    enum { BLOCK = 2, AHEAD = 3 };
    const struct {
        size_t spare, ahead;
    } rows[] = {{4, 0}, {5, 1}, {6, 2}, {7, 3}, {8, 3}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t address;

        pool_open_small(&f, 256, 64, 0);
        spw_pool_map_ahead(f.pool, AHEAD);
        leave_spare(rows[i].spare);
        address = pool_alloc(&f, BLOCK * GRANULE, &stream_a);
        assert_int_equal(f.vm.calls[FAKE_MAP], BLOCK + rows[i].ahead);
        assert_int_equal(committed(), rows[i].spare);
        if (rows[i].ahead > 0) {
            (void)pool_memory_calls(&f);
            assert_int_equal(pool_alloc(&f, rows[i].ahead * GRANULE, &stream_a),
                             address + BLOCK * GRANULE);
            assert_int_equal(pool_memory_calls(&f), 0);
        }
        pool_close(&f);
    }
}

/* Small blocks, and those of a numbered heap, have nothing mapped ahead. */
static void test_nothing_ahead(void **state)
{
    const struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .heap = 1};

    pool_open_as(&f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                               .arena_bytes = 256ull * GRANULE,
                                               .limit_bytes = 64ull * GRANULE,
                                               .numbered_heaps = 1});
    spw_pool_map_ahead(f.pool, 4);
    leave_spare(32);
    (void)pool_alloc(&f, 512, &stream_a);
    assert_int_equal(f.vm.calls[FAKE_MAP], 1);
    (void)alloc_placed(2 * GRANULE, &placement);
    assert_int_equal(f.vm.calls[FAKE_MAP], 3);
    pool_close(&f);
}

/* ---- a full device ---- */

static void grow_device(struct fake_vm *vm)
{
    vm->most_chunks = 6;
}

/* What the device refused is tried again after a wait: others may have freed memory. */
static void test_full_device_is_tried_again(void **state)
{
    uint64_t half;

    pool_open_small(&f, 256, 64, 0);
    half = pool_alloc(&f, 2 * GRANULE, NULL);
    (void)pool_alloc(&f, 2 * GRANULE, NULL);
    f.vm.most_chunks = 4;
    pool_free(&f, half, NULL);
    f.vm.on_finished = grow_device;
    (void)pool_alloc(&f, 4 * GRANULE, NULL);
    assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], 1);
    assert_int_equal(committed(), 6);
    f.vm.on_finished = NULL;
    pool_close(&f);
}

/* If the wait is refused, the error says what was short: the device, or the limit. */
static void test_refused_wait(void **state)
{
    for (int full = 0; full < 2; full++) {
        pool_open_small(&f, 256, full ? 64 : 4, 0);
        f.vm.most_chunks = full ? 4 : 0;
        pool_free(&f, pool_alloc(&f, 4 * GRANULE, NULL), NULL);
        f.vm.fail_call = FAKE_WAIT_HOST;
        f.vm.fail_after = 0;
        f.vm.fail_more = 100;
        pool_refuse(&f, 4 * GRANULE, NULL, full ? SPW_E_NO_MEMORY : SPW_E_LIMIT);
        assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], 1);
        f.vm.fail_call = -1;
        pool_close(&f);
    }
}

/* ---- placements ---- */

static void open_placing(bool host_heap)
{
    to_commit = 0;
    pool_open_as(&f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                               .arena_bytes = 256ull * GRANULE,
                                               .limit_bytes = 8ull * GRANULE,
                                               .host_limit_bytes = 16ull * GRANULE,
                                               .host_heap = host_heap,
                                               .to_commit = &to_commit});
}

/* The host's share is rounded to the next granule, a half up; more than all is all. */
static void test_share_is_rounded(void **state)
{
    const struct {
        uint32_t permille;
        size_t granules, host;
    } rows[] = {{500, 1, 1}, {499, 1, 0}, {249, 2, 0}, {250, 2, 1}, {1000, 3, 3}, {2000, 3, 3}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX,
                                                     .host_permille = rows[i].permille};
        uint64_t address;

        open_placing(/* host_heap */ false);
        address = alloc_placed(rows[i].granules * GRANULE, &placement);
        assert_int_equal(fake_vm_on_host(&f.vm, address, rows[i].granules * GRANULE), rows[i].host);
        pool_close(&f);
    }
}

/* Without a heap for the host, a small block there takes a granule of its own. */
static void test_small_block_on_the_host(void **state)
{
    const struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .on_host = true};
    uint64_t placed, small;

    open_placing(/* host_heap */ false);
    placed = alloc_placed(512, &placement);
    assert_int_equal(fake_vm_on_host(&f.vm, placed, 512), 1);
    small = pool_alloc(&f, 512, &stream_a);
    assert_int_equal(fake_vm_on_host(&f.vm, small, 512), 0);
    assert_true(placed > small); /* among the large ones */
    pool_close(&f);
}

/* Only blocks of a granule or more are lazy, and none that is on the host. */
static void test_what_is_lazy(void **state)
{
    struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .lazy = true};
    uint64_t address = 4711, lazy;

    open_placing(/* host_heap */ false);
    (void)alloc_placed(GRANULE - 512, &placement);
    assert_int_equal(to_commit, 0);
    lazy = alloc_placed(GRANULE, &placement);
    assert_int_equal(to_commit, 1);
    placement.on_host = true;
    (void)alloc_placed(2 * GRANULE, &placement);
    assert_int_equal(to_commit, 1);
    placement.on_host = false;
    assert_int_equal(try_placed(250ull * GRANULE, &placement, &address), SPW_E_LIMIT);
    assert_int_equal(address, 4711);
    spw_pool_set_limit(f.pool, 1ull << 40);
    assert_int_equal(try_placed(250ull * GRANULE, &placement, &address), SPW_E_NO_MEMORY);
    assert_int_equal(address, 4711);
    assert_int_equal(to_commit, 1);
    pool_free(&f, lazy, &stream_a);
    assert_int_equal(to_commit, 0);
    pool_close(&f);
}

/* A lazy block may be as large as the limit, however much is live. */
static void test_lazy_beside_live_blocks(void **state)
{
    const struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .lazy = true};
    uint64_t address = 4711;

    open_placing(/* host_heap */ false);
    (void)pool_alloc(&f, 8 * GRANULE, &stream_a);
    assert_int_equal(try_placed(8 * GRANULE + 1, &placement, &address), SPW_E_LIMIT);
    (void)alloc_placed(8 * GRANULE, &placement);
    pool_close(&f);
}

/* The part of a block that is placed on the device may be stolen from free memory there; and when
 * the host has no room for the other part, nothing is kept. */
static void test_part_on_the_device(void **state)
{
    const struct spw_pool_placement half = {.limit_bytes = UINT64_MAX, .host_permille = 500};
    uint64_t free, address = 4711;

    open_placing(/* host_heap */ false);
    f.vm.immediate = true;
    free = pool_alloc(&f, 4 * GRANULE, &stream_a);
    (void)pool_alloc(&f, 4 * GRANULE, &stream_a);
    pool_free(&f, free, &stream_a);
    spw_pool_set_host_limit(f.pool, 3 * GRANULE);
    assert_int_equal(try_placed(8 * GRANULE, &half, &address), SPW_E_LIMIT);
    spw_pool_set_host_limit(f.pool, 4 * GRANULE);
    address = alloc_placed(8 * GRANULE, &half);
    assert_int_equal(fake_vm_on_host(&f.vm, address, 8 * GRANULE), 4);
    assert_int_equal(spw_counter_get(&f.counters.steals), 4);
    assert_int_equal(committed(), 8);
    assert_int_equal(try_placed(2 * GRANULE, &half, &address), SPW_E_LIMIT);
    pool_close(&f);
}

/* Memory of the host that waits for work is waited for. */
static void test_host_is_waited_for(void **state)
{
    const struct spw_pool_placement placement = {.limit_bytes = UINT64_MAX, .on_host = true};
    struct spw_pool_usage usage;
    uint64_t first;

    for (int host_heap = 0; host_heap < 2; host_heap++) {
        open_placing(host_heap);
        first = alloc_placed(16 * GRANULE, &placement);
        pool_free(&f, first, &stream_b);
        (void)alloc_placed(15 * GRANULE, &placement);
        assert_int_equal(f.vm.host_chunks, 16);
        spw_pool_usage(f.pool, &usage);
        assert_int_equal(usage.placed, 15 * GRANULE);
        assert_int_equal(f.vm.calls[FAKE_WAIT_SOON], 1);
        pool_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_smallest_of_other_streams),
        cmocka_unit_test(test_no_wait_no_memory),
        cmocka_unit_test(test_addresses_run_out),
        cmocka_unit_test(test_no_addresses_ahead),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_nothing_ahead),
        cmocka_unit_test(test_full_device_is_tried_again),
        cmocka_unit_test(test_refused_wait),
        cmocka_unit_test(test_share_is_rounded),
        cmocka_unit_test(test_small_block_on_the_host),
        cmocka_unit_test(test_what_is_lazy),
        cmocka_unit_test(test_lazy_beside_live_blocks),
        cmocka_unit_test(test_part_on_the_device),
        cmocka_unit_test(test_host_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
