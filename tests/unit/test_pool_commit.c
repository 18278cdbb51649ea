/* The last step of a move when the driver refuses, one refusal after the other: how often a step is
 * tried again before a granule counts as lost, and as what. */
#include "pool/pool.h"
#include "pool_fixture.h"

enum { DEVICE = 8, HOST = 16 };

/* A block of one granule, which has been copied to the host. */
static uint64_t copied(struct pool_fixture *f)
{
    const struct spw_move_request request = {.to = SPW_TIER_HOST, .bytes = GRANULE};
    bool moves = false;
    uint64_t block;

    pool_open_small(f, 256, DEVICE, 0);
    assert_int_equal(spw_pool_open_host(f->pool, (uint64_t)HOST * GRANULE, &moves), SPW_OK);
    f->vm.immediate = true;
    block = pool_alloc(f, GRANULE, &stream_a);
    fake_vm_write(&f->vm, block, GRANULE, 100);
    assert_int_equal(spw_pool_move_begin(f->pool, &request, &f->move), SPW_OK);
    assert_int_equal(spw_pool_move_copy(f->pool, f->move, true), SPW_OK);
    assert_int_equal(spw_pool_move_poll(f->pool, f->move), SPW_OK);
    return block;
}

/* Commits the move. The next call of this kind fails, and `more` after it. Returns the bytes moved.
 */
static uint64_t commit(struct pool_fixture *f, enum fake_call call, size_t more,
                       enum spw_err expected)
{
    uint64_t moved = 0;

    f->vm.fail_call = (int)call;
    f->vm.fail_after = 0;
    f->vm.fail_more = more;
    assert_int_equal(spw_pool_move_commit(f->pool, f->move, &moved), expected);
    f->vm.fail_call = -1;
    pool_check(f);
    return moved;
}

/* The block is at its place with its content, and the pool goes on. */
static void expect_whole(struct pool_fixture *f, uint64_t block, size_t on_host)
{
    uint64_t bytes;

    assert_int_equal(spw_pool_move_lost(f->pool, &bytes), 0);
    assert_int_equal(bytes, 0);
    pool_expect(f, block, 1, 100, on_host);
    assert_int_equal(spw_pool_move_end(f->pool, f->move), SPW_OK);
    pool_close(f);
}

/* The block is lost until its granule is mapped again, and then has its content. */
static void expect_lost(struct pool_fixture *f, uint64_t block, enum fake_call call, size_t on_host)
{
    size_t maps = f->vm.calls[FAKE_MAP];
    uint64_t bytes;

    assert_int_equal(spw_pool_move_lost(f->pool, &bytes), block);
    assert_int_equal(bytes, GRANULE);
    assert_int_equal(spw_pool_move_end(f->pool, f->move), SPW_OK);
    assert_int_equal(spw_pool_move_remap_lost(f->pool), SPW_OK);
    assert_int_equal(f->vm.calls[FAKE_MAP] - maps, call == FAKE_MAP ? 1 : 0);
    pool_expect(f, block, 1, 100, on_host);
    assert_int_equal(spw_counter_get(&f->counters.host_used_bytes), on_host * GRANULE);
    pool_close(f);
}

/* The new chunk is not mapped. The old one is tried twice. */
static void test_map(void **state)
{
    for (size_t more = 0; more < 4; more++) {
        struct pool_fixture f;
        uint64_t block = copied(&f);

        assert_int_equal(commit(&f, FAKE_MAP, more, SPW_E_NO_MEMORY), 0);
        if (more < 2) {
            expect_whole(&f, block, /* on_host */ 0);
        } else {
            expect_lost(&f, block, FAKE_MAP, /* on_host */ 0);
        }
    }
}

/* The new chunk gets no access. It is tried twice, then the old one twice. */
static void test_access(void **state)
{
    for (size_t more = 0; more < 6; more++) {
        struct pool_fixture f;
        uint64_t block = copied(&f);
        enum spw_err expected = more == 0 ? SPW_OK : SPW_E_NO_MEMORY;

        assert_int_equal(commit(&f, FAKE_ACCESS, more, expected), more == 0 ? GRANULE : 0);
        if (more < 3) {
            expect_whole(&f, block, /* on_host */ more == 0);
        } else {
            expect_lost(&f, block, FAKE_ACCESS, /* on_host */ 0);
        }
    }
}

/* The new chunk gets no access and cannot be unmapped either: it stays, and waits for access. */
static void test_access_and_unmap(void **state)
{
    struct pool_fixture f;
    uint64_t block = copied(&f);

    f.vm.keeps_inaccessible = true;
    assert_int_equal(commit(&f, FAKE_ACCESS, 1, SPW_E_NO_MEMORY), GRANULE);
    f.vm.keeps_inaccessible = false;
    expect_lost(&f, block, FAKE_ACCESS, /* on_host */ 1);
}

/* The old chunk is not unmapped: nothing is changed. */
static void test_unmap(void **state)
{
    struct pool_fixture f;
    uint64_t block = copied(&f);

    assert_int_equal(commit(&f, FAKE_UNMAP, 0, SPW_E_NO_MEMORY), 0);
    expect_whole(&f, block, /* on_host */ 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_access),
        cmocka_unit_test(test_access_and_unmap),
        cmocka_unit_test(test_unmap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
