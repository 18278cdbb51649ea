/* Two moves under way at once: neither touches the granules of the other, whatever fails. */
#include "pool/pool.h"
#include "pool_fixture.h"

enum { DEVICE = 8, HOST = 16 };

/* Two blocks of two granules each. */
struct fixture {
    struct pool_fixture pool;
    uint64_t blocks[2];
    struct spw_move *moves[2];
};

static void open_fixture(struct fixture *f)
{
    bool moves = false;

    pool_open_small(&f->pool, 256, DEVICE, 0);
    assert_int_equal(spw_pool_open_host(f->pool.pool, (uint64_t)HOST * GRANULE, &moves), SPW_OK);
    for (uint64_t i = 0; i < 2; i++) {
        f->blocks[i] = pool_alloc(&f->pool, 2 * GRANULE, &stream_a);
        fake_vm_write(&f->pool.vm, f->blocks[i], 2 * GRANULE, 100 * i + 100);
        f->moves[i] = NULL;
    }
    f->pool.vm.immediate = true;
}

/* Begins to move a block, and its copies. */
static enum spw_err begin(struct fixture *f, size_t i, enum spw_tier to)
{
    const uint64_t block = f->blocks[i];
    const struct spw_move_place places[2] = {{.block = block, .granule = block, .to = to},
                                             {block, block + GRANULE, to}};
    const struct spw_move_request request = {.places = places, .count = 2};
    enum spw_err err = spw_pool_move_begin(f->pool.pool, &request, &f->moves[i]);

    pool_check(&f->pool);
    return err == SPW_OK ? spw_pool_move_copy(f->pool.pool, f->moves[i], /* after_all */ false)
                         : err;
}

static uint64_t commit(struct fixture *f, size_t i)
{
    uint64_t bytes = 0;

    if (spw_pool_move_poll(f->pool.pool, f->moves[i]) == SPW_OK) {
        (void)spw_pool_move_commit(f->pool.pool, f->moves[i], &bytes);
    }
    pool_check(&f->pool);
    return bytes;
}

static void end(struct fixture *f, size_t i)
{
    assert_int_equal(spw_pool_move_end(f->pool.pool, f->moves[i]), SPW_OK);
    pool_check(&f->pool);
}

static void expect(struct fixture *f, size_t i, size_t on_host)
{
    struct fake_vm *vm = &f->pool.vm;

    assert_true(fake_vm_usable(vm, f->blocks[i], 2 * GRANULE));
    assert_int_equal(fake_vm_differs(vm, f->blocks[i], 2 * GRANULE, 100 * i + 100), 0);
    assert_int_equal(fake_vm_on_host(vm, f->blocks[i], 2 * GRANULE), on_host);
}

static int64_t room(struct fixture *f)
{
    struct spw_granule_info spots[16];
    uint64_t address;
    int64_t bytes;

    assert_int_equal(spw_pool_scan_granules(f->pool.pool, spots, 16, &address, &bytes), 4);
    return bytes / GRANULE;
}

static size_t shown_on_host(struct fixture *f)
{
    struct spw_granule_info spots[16];
    uint64_t address;
    int64_t bytes;
    size_t count = spw_pool_scan_granules(f->pool.pool, spots, 16, &address, &bytes), shown = 0;

    for (size_t i = 0; i < count; i++) {
        shown += spots[i].tier == SPW_TIER_HOST;
    }
    return shown;
}

static void test_in_either_order(void **state)
{
    for (size_t first = 0; first < 2; first++) {
        struct fixture f;

        open_fixture(&f);
        assert_int_equal(begin(&f, 0, SPW_TIER_HOST), SPW_OK);
        assert_int_equal(begin(&f, 1, SPW_TIER_HOST), SPW_OK);
        assert_true(f.moves[0] != f.moves[1]);
        assert_int_equal(commit(&f, first), 2 * GRANULE);
        expect(&f, first, 2);
        expect(&f, !first, 0);
        end(&f, first);
        assert_int_equal(commit(&f, !first), 2 * GRANULE);
        end(&f, !first);
        expect(&f, 0, 2);
        expect(&f, 1, 2);
        pool_close(&f.pool);
    }
}

/* One after the other, without a pause, in both directions. */
static void test_by_turns(void **state)
{
    struct fixture f;

    open_fixture(&f);
    assert_int_equal(begin(&f, 0, SPW_TIER_HOST), SPW_OK);
    for (size_t i = 0; i < 12; i++) {
        enum spw_tier to = i / 2 % 2 == 0 ? SPW_TIER_HOST : SPW_TIER_DEVICE;
        enum spw_tier next = (i + 1) / 2 % 2 == 0 ? SPW_TIER_HOST : SPW_TIER_DEVICE;

        assert_int_equal(begin(&f, (i + 1) % 2, next), SPW_OK);
        assert_int_equal(commit(&f, i % 2), 2 * GRANULE);
        expect(&f, i % 2, to == SPW_TIER_HOST ? 2 : 0);
        end(&f, i % 2);
    }
    pool_close(&f.pool);
}

/* A granule of one move cannot be taken by another, and there are at most two moves. */
static void test_no_more_than_two(void **state)
{
    struct fixture f;

    open_fixture(&f);
    assert_int_equal(begin(&f, 0, SPW_TIER_HOST), SPW_OK);
    assert_int_equal(begin(&f, 0, SPW_TIER_HOST), SPW_E_NOTHING);
    assert_int_equal(begin(&f, 1, SPW_TIER_HOST), SPW_OK);
    f.blocks[0] = pool_alloc(&f.pool, 2 * GRANULE, &stream_a);
    assert_int_equal(begin(&f, 0, SPW_TIER_HOST), SPW_E_AGAIN);
    pool_close(&f.pool); /* with both */
}

/* An abandoned move keeps its record until its copies are done. */
static void test_abandoned(void **state)
{
    struct fixture f;

    open_fixture(&f);
    f.pool.vm.immediate = false;
    assert_int_equal(begin(&f, 0, SPW_TIER_HOST), SPW_OK);
    assert_int_equal(begin(&f, 1, SPW_TIER_HOST), SPW_OK);
    assert_int_equal(spw_pool_move_end(f.pool.pool, f.moves[0]), SPW_E_AGAIN);
    assert_int_equal(begin(&f, 0, SPW_TIER_HOST), SPW_E_AGAIN);
    fake_vm_complete(&f.pool.vm);
    assert_int_equal(begin(&f, 0, SPW_TIER_HOST), SPW_OK);
    assert_int_equal(commit(&f, 1), 2 * GRANULE);
    end(&f, 1);
    expect(&f, 0, 0);
    expect(&f, 1, 2);
    pool_close(&f.pool);
}

/* Granules that are being moved count as moved. */
static void test_room(void **state)
{
    struct fixture f;

    open_fixture(&f);
    assert_int_equal(room(&f), DEVICE - 4);
    assert_int_equal(begin(&f, 0, SPW_TIER_HOST), SPW_OK);
    assert_int_equal(room(&f), DEVICE - 2);
    assert_int_equal(spw_pool_room(f.pool.pool), (DEVICE - 2) * GRANULE);
    assert_int_equal(shown_on_host(&f), 2);
    assert_int_equal(begin(&f, 1, SPW_TIER_HOST), SPW_OK);
    assert_int_equal(room(&f), DEVICE);
    assert_int_equal(shown_on_host(&f), 4);
    assert_int_equal(commit(&f, 0), 2 * GRANULE);
    assert_int_equal(room(&f), DEVICE);
    end(&f, 0);
    assert_int_equal(begin(&f, 0, SPW_TIER_DEVICE), SPW_OK);
    assert_int_equal(room(&f), DEVICE - 2);
    spw_pool_move_leave(f.pool.pool, f.moves[1]);
    assert_int_equal(room(&f), DEVICE - 4);
    end(&f, 1);
    pool_close(&f.pool);
}

static void test_fixed_meanwhile(void **state)
{
    const struct spw_block_attributes known = {.fix = SPW_FIXED_SHARED};
    struct fixture f;

    open_fixture(&f);
    assert_int_equal(begin(&f, 0, SPW_TIER_HOST), SPW_OK);
    assert_int_equal(begin(&f, 1, SPW_TIER_HOST), SPW_OK);
    assert_int_equal(spw_pool_set_attributes(f.pool.pool, f.blocks[1], 1, &known), 1);
    assert_int_equal(room(&f), DEVICE - 2);
    assert_int_equal(commit(&f, 0), 2 * GRANULE);
    assert_int_equal(commit(&f, 1), 0);
    end(&f, 0);
    end(&f, 1);
    expect(&f, 0, 2);
    expect(&f, 1, 0);
    pool_close(&f.pool);
}

/* Both blocks are moved in both directions, each while the other is under way. */
static bool run_with_faults(enum fake_call call, size_t after, size_t more)
{
    struct fixture f;
    bool reached;

    open_fixture(&f);
    f.pool.vm.fail_call = (int)call;
    f.pool.vm.fail_after = after;
    f.pool.vm.fail_more = more;
    for (size_t turn = 0; turn < 4; turn++) {
        enum spw_tier to = turn % 2 == 0 ? SPW_TIER_HOST : SPW_TIER_DEVICE;
        bool begun[2];

        for (size_t i = 0; i < 2; i++) {
            f.moves[i] = NULL;
            begun[i] = begin(&f, i, to) == SPW_OK;
        }
        for (size_t i = 0; i < 2; i++) {
            if (begun[i]) {
                (void)commit(&f, i);
            }
            if (f.moves[i] != NULL) {
                (void)spw_pool_move_end(f.pool.pool, f.moves[i]);
            }
            pool_check(&f.pool);
        }
    }
    reached = f.pool.vm.calls[call] > after;
    f.pool.vm.fail_call = -1;
    assert_int_equal(spw_pool_move_remap_lost(f.pool.pool), SPW_OK);
    for (size_t i = 0; i < 2; i++) {
        expect(&f, i, fake_vm_on_host(&f.pool.vm, f.blocks[i], 2 * GRANULE));
        pool_free(&f.pool, f.blocks[i], &stream_a);
    }
    (void)spw_pool_trim(f.pool.pool, 0);
    (void)spw_pool_trim_host(f.pool.pool);
    pool_check(&f.pool);
    assert_int_equal(f.pool.vm.chunks + f.pool.vm.host_chunks, 0);
    pool_close(&f.pool);
    return reached;
}

static void test_faults(void **state)
{
    static const enum fake_call calls[] = {FAKE_CREATE, FAKE_MAP,   FAKE_ACCESS, FAKE_UNMAP,
                                           FAKE_FENCE,  FAKE_QUERY, FAKE_COPY};

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        for (size_t more = 0; more < 12; more += more < 4 ? 1 : 4) {
            size_t after = 0;

            while (run_with_faults(calls[i], after, more)) {
                after++;
            }
            assert_true(after > 0 || calls[i] == FAKE_FENCE);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_either_order),
        cmocka_unit_test(test_by_turns),
        cmocka_unit_test(test_no_more_than_two),
        cmocka_unit_test(test_abandoned),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_fixed_meanwhile),
        cmocka_unit_test(test_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
