/* Chunks that are away: unmapped while they are copied, and until they are used. Content stays, and
 * nothing leaks, whatever fails. */
#include "pool/alloc/state.h"
#include "pool_fixture.h"

enum { DEVICE = 12, HOST = 32, BLOCKS = 3, GRANULES = 2 };

struct fixture {
    struct pool_fixture pool;
    uint64_t blocks[BLOCKS];
};

static void open_fixture(struct fixture *f)
{
    bool moves = false;

    pool_open_small(&f->pool, 256, DEVICE, 0);
    assert_int_equal(spw_pool_open_host(f->pool.pool, (uint64_t)HOST * GRANULE, &moves), SPW_OK);
    f->pool.vm.immediate = true;
    for (uint64_t i = 0; i < BLOCKS; i++) {
        f->blocks[i] = pool_alloc(&f->pool, GRANULES * GRANULE, &stream_a);
        fake_vm_write(&f->pool.vm, f->blocks[i], GRANULES * GRANULE, 100 * i + 100);
    }
}

static enum spw_err begin(struct fixture *f, size_t block, enum spw_tier to)
{
    struct spw_move_place places[GRANULES];
    const struct spw_move_request request = {.places = places, .count = GRANULES};
    enum spw_err err;

    for (size_t i = 0; i < GRANULES; i++) {
        places[i] = (struct spw_move_place){
            .block = f->blocks[block], .granule = f->blocks[block] + i * GRANULE, .to = to};
    }
    err = spw_pool_move_begin(f->pool.pool, &request, &f->pool.move);
    pool_check(&f->pool);
    return err;
}

/* Moves a block without stopping anything. Returns the bytes moved. */
static uint64_t move(struct fixture *f, size_t block, enum spw_tier to)
{
    uint64_t bytes = 0;

    if (begin(f, block, to) != SPW_OK) {
        return 0;
    }
    (void)spw_pool_move_detach(f->pool.pool, f->pool.move);
    pool_check(&f->pool);
    if (spw_pool_move_copy(f->pool.pool, f->pool.move, /* after_all */ false) == SPW_OK &&
        spw_pool_move_poll(f->pool.pool, f->pool.move) == SPW_OK) {
        (void)spw_pool_move_commit(f->pool.pool, f->pool.move, &bytes);
        pool_check(&f->pool);
    }
    for (int i = 0; i < 3 && spw_pool_move_end(f->pool.pool, f->pool.move) != SPW_OK; i++) {
        pool_check(&f->pool);
    }
    return bytes;
}

static bool is_usable(struct fixture *f, size_t block)
{
    return fake_vm_usable(&f->pool.vm, f->blocks[block], GRANULES * GRANULE);
}

static void attach(struct fixture *f, size_t block)
{
    (void)spw_pool_attach(f->pool.pool, f->blocks[block], f->blocks[block] + GRANULES * GRANULE);
    pool_check(&f->pool);
}

static void expect(struct fixture *f, size_t block, size_t on_host)
{
    pool_expect(&f->pool, f->blocks[block], GRANULES, 100 * block + 100, on_host);
}

/* An eviction makes no mapping, and a return maps only the new chunks. */
static void test_there_and_back(void **state)
{
    struct fixture f;
    size_t maps, unmaps;

    open_fixture(&f);
    assert_int_equal(move(&f, 0, SPW_TIER_HOST), GRANULES * GRANULE);
    assert_false(is_usable(&f, 0));
    expect(&f, 1, 0);
    assert_int_equal(f.pool.pool->backing.away, GRANULES);
    /* Both chunks have second addresses now. */
    maps = f.pool.vm.calls[FAKE_MAP];
    unmaps = f.pool.vm.calls[FAKE_UNMAP];
    assert_int_equal(move(&f, 0, SPW_TIER_DEVICE), GRANULES * GRANULE);
    assert_int_equal(f.pool.vm.calls[FAKE_UNMAP], unmaps);
    expect(&f, 0, 0);
    assert_int_equal(f.pool.pool->backing.away, 0);
    assert_true(f.pool.vm.calls[FAKE_MAP] > maps);
    maps = f.pool.vm.calls[FAKE_MAP];
    assert_int_equal(move(&f, 0, SPW_TIER_HOST), GRANULES * GRANULE);
    assert_int_equal(f.pool.vm.calls[FAKE_MAP], maps);
    attach(&f, 0);
    expect(&f, 0, GRANULES);
    assert_int_equal(move(&f, 0, SPW_TIER_DEVICE), GRANULES * GRANULE);
    expect(&f, 0, 0);
    pool_close(&f.pool);
}

/* A block that is attached during its move stays where it was, and only that one. */
static void test_attached_during_a_move(void **state)
{
    for (int to = 0; to < SPW_TIER_COUNT; to++) {
        struct fixture f;
        uint64_t bytes;

        open_fixture(&f);
        if (to == SPW_TIER_DEVICE) {
            assert_int_equal(move(&f, 0, SPW_TIER_HOST), GRANULES * GRANULE);
        }
        assert_int_equal(begin(&f, 0, (enum spw_tier)to), SPW_OK);
        assert_true(spw_pool_move_detach(f.pool.pool, f.pool.move) > 0);
        assert_int_equal(spw_pool_move_copy(f.pool.pool, f.pool.move, false), SPW_OK);
        attach(&f, 1); /* not this one */
        assert_false(is_usable(&f, 0));
        attach(&f, 0);
        fake_vm_write(&f.pool.vm, f.blocks[0], GRANULES * GRANULE, 700);
        assert_int_equal(spw_pool_move_poll(f.pool.pool, f.pool.move), SPW_OK);
        assert_int_equal(spw_pool_move_commit(f.pool.pool, f.pool.move, &bytes), SPW_OK);
        assert_int_equal(bytes, 0);
        assert_int_equal(spw_pool_move_end(f.pool.pool, f.pool.move), SPW_OK);
        pool_expect(&f.pool, f.blocks[0], GRANULES, 700, to == SPW_TIER_DEVICE ? GRANULES : 0);
        pool_close(&f.pool);
    }
}

/* A move with the usual stop takes chunks that are away as well. */
static void test_with_a_stop(void **state)
{
    struct fixture f;
    uint64_t bytes;

    open_fixture(&f);
    assert_int_equal(move(&f, 0, SPW_TIER_HOST), GRANULES * GRANULE);
    assert_int_equal(begin(&f, 0, SPW_TIER_DEVICE), SPW_OK);
    assert_int_equal(spw_pool_move_copy(f.pool.pool, f.pool.move, true), SPW_OK);
    assert_int_equal(spw_pool_move_poll(f.pool.pool, f.pool.move), SPW_OK);
    assert_int_equal(spw_pool_move_commit(f.pool.pool, f.pool.move, &bytes), SPW_OK);
    assert_int_equal(bytes, GRANULES * GRANULE);
    assert_int_equal(spw_pool_move_end(f.pool.pool, f.pool.move), SPW_OK);
    expect(&f, 0, 0);
    pool_close(&f.pool);
}

/* Memory of a freed block that is away serves other blocks, and is released. */
static void test_freed(void **state)
{
    struct fixture f;
    uint64_t again;

    open_fixture(&f);
    assert_int_equal(move(&f, 1, SPW_TIER_HOST), GRANULES * GRANULE);
    pool_free(&f.pool, f.blocks[1], &stream_a);
    pool_check(&f.pool);
    again = pool_alloc(&f.pool, (DEVICE - 2 * GRANULES) * GRANULE, &stream_a);
    (void)spw_pool_attach(f.pool.pool, again, again + GRANULE);
    (void)spw_pool_attach_all(f.pool.pool);
    assert_true(fake_vm_usable(&f.pool.vm, again, (DEVICE - 2 * GRANULES) * GRANULE));
    assert_int_equal(f.pool.pool->backing.away, 0);
    expect(&f, 0, 0);
    expect(&f, 2, 0);
    pool_free(&f.pool, again, &stream_a);
    for (size_t i = 0; i < BLOCKS; i += 2) {
        assert_int_equal(move(&f, i, SPW_TIER_HOST), GRANULES * GRANULE);
        pool_free(&f.pool, f.blocks[i], &stream_a);
    }
    (void)spw_pool_trim(f.pool.pool, 0);
    (void)spw_pool_trim_host(f.pool.pool);
    pool_close_empty(&f.pool);
}

/* A block that may not move from now on is mapped. */
static void test_fixed(void **state)
{
    const struct spw_block_attributes fix = {.fix = SPW_FIXED_BY_PROGRAM};
    struct fixture f;

    open_fixture(&f);
    assert_int_equal(move(&f, 0, SPW_TIER_HOST), GRANULES * GRANULE);
    assert_int_equal(move(&f, 1, SPW_TIER_HOST), GRANULES * GRANULE);
    assert_true(spw_pool_set_attributes_of(f.pool.pool, f.blocks[0], &fix));
    expect(&f, 0, GRANULES);
    assert_false(is_usable(&f, 1));
    spw_pool_fix_all(f.pool.pool);
    expect(&f, 1, GRANULES);
    spw_pool_release_all(f.pool.pool);
    pool_close(&f.pool);
}

/* Access of another device is given to mapped chunks only; the others get it when they are mapped.
 */
static void test_access_of_another_device(void **state)
{
    struct fixture f;
    size_t shared;

    open_fixture(&f);
    shared = f.pool.vm.shared;
    assert_int_equal(move(&f, 0, SPW_TIER_HOST), GRANULES * GRANULE);
    assert_int_equal(spw_pool_refresh_access(f.pool.pool), SPW_OK);
    assert_int_equal(f.pool.vm.shared - shared, (BLOCKS - 1) * GRANULES);
    attach(&f, 0);
    expect(&f, 0, GRANULES);
    pool_close(&f.pool);
}

/* Where nothing can be unmapped, for want of a second address, the move goes on in the usual way.
 */
static void test_nothing_is_detached(void **state)
{
    struct fixture f;
    uint64_t bytes;

    open_fixture(&f);
    assert_int_equal(begin(&f, 0, SPW_TIER_HOST), SPW_OK);
    f.pool.vm.fail_call = FAKE_ACCESS;
    assert_int_equal(spw_pool_move_detach(f.pool.pool, f.pool.move), 0);
    assert_true(is_usable(&f, 0));
    f.pool.vm.fail_call = -1;
    assert_int_equal(spw_pool_move_copy(f.pool.pool, f.pool.move, true), SPW_OK);
    assert_int_equal(spw_pool_move_commit(f.pool.pool, f.pool.move, &bytes), SPW_OK);
    assert_int_equal(bytes, GRANULES * GRANULE);
    assert_int_equal(spw_pool_move_end(f.pool.pool, f.pool.move), SPW_OK);
    expect(&f, 0, GRANULES);
    pool_close(&f.pool);
}

/* Once the backend gives no access any more, evictions would help nothing: an eviction needs none,
 * but the block that asked for room does. */
static void test_access_is_refused(void **state)
{
    struct fixture f;
    uint64_t address;

    open_fixture(&f);
    f.pool.vm.fail_call = FAKE_ACCESS;
    f.pool.vm.fail_more = SIZE_MAX;
    for (int i = 0; i < SPW_BACKING_REFUSALS; i++) {
        assert_int_equal(f.pool.pool->backing.refusals, i);
        assert_int_not_equal(pool_try(f.pool.pool, GRANULE, &stream_a, NULL, &address), SPW_OK);
    }
    assert_int_equal(begin(&f, 0, SPW_TIER_HOST), SPW_E_AGAIN);
    f.pool.vm.fail_call = -1;
    pool_free(&f.pool, pool_alloc(&f.pool, GRANULE, &stream_a), &stream_a);
    assert_int_equal(move(&f, 0, SPW_TIER_HOST), GRANULES * GRANULE);
    attach(&f, 0);
    expect(&f, 0, GRANULES);
    pool_close(&f.pool);
}

/* Blocks go to and fro by turns, some of them in use meanwhile. */
static bool run_with_faults(int fail_call, size_t fail_after, size_t fail_more)
{
    struct fixture f;
    bool reached;

    open_fixture(&f);
    f.pool.vm.fail_call = fail_call;
    f.pool.vm.fail_after = fail_after;
    f.pool.vm.fail_more = fail_more;
    for (size_t i = 0; i < 4 * BLOCKS; i++) {
        (void)move(&f, i % BLOCKS, i / BLOCKS % 2 == 0 ? SPW_TIER_HOST : SPW_TIER_DEVICE);
        if (i % 5 == 4) {
            attach(&f, i % BLOCKS);
        }
    }
    reached = fail_call >= 0 && f.pool.vm.calls[fail_call] > fail_after;
    f.pool.vm.fail_call = -1;
    (void)spw_pool_attach_all(f.pool.pool);
    pool_check(&f.pool);
    assert_int_equal(spw_pool_move_remap_lost(f.pool.pool), SPW_OK);
    for (size_t i = 0; i < BLOCKS; i++) {
        assert_true(is_usable(&f, i));
        assert_int_equal(
            fake_vm_differs(&f.pool.vm, f.blocks[i], GRANULES * GRANULE, 100 * i + 100), 0);
        pool_free(&f.pool, f.blocks[i], &stream_a);
    }
    pool_close_empty(&f.pool);
    return reached;
}

static void test_faults(void **state)
{
    static const enum fake_call calls[] = {FAKE_CREATE, FAKE_MAP,   FAKE_ACCESS, FAKE_UNMAP,
                                           FAKE_FENCE,  FAKE_QUERY, FAKE_COPY};

    assert_false(run_with_faults(-1, 0, 0));
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        for (size_t more = 0; more < 4; more++) {
            pool_sweep(run_with_faults, calls[i], more);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_attached_during_a_move),
        cmocka_unit_test(test_with_a_stop),
        cmocka_unit_test(test_freed),
        cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_access_of_another_device),
        cmocka_unit_test(test_nothing_is_detached),
        cmocka_unit_test(test_access_is_refused),
        cmocka_unit_test(test_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
