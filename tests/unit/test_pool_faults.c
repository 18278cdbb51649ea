/* Faults: every call to the device fails once: the first, the second, and so on until a run makes
 * fewer calls. The program must see success or an error, the pool must keep its invariants, and
 * nothing may be left on the device. */
#include "pool_fixture.h"

enum { LIMIT_GRANULES = 24, HOST_GRANULES = 12, BLOCKS = 48, STEPS = 250 };

static uint64_t draw(uint64_t *random, uint64_t bound)
{
    *random = *random * 6364136223846793005ull + 1442695040888963407ull;
    return (*random >> 33) % bound;
}

static void one_step(struct pool_fixture *f, uint64_t *random, uint64_t *blocks)
{
    const struct spw_stream *streams[] = {&stream_a, &stream_b, &stream_c, NULL};
    const struct spw_stream *stream = streams[draw(random, 4)];
    uint64_t *block = &blocks[draw(random, BLOCKS)];
    uint64_t bytes = draw(random, draw(random, 4) == 0 ? 8 * GRANULE : GRANULE) + 1;
    uint64_t host_bytes;

    if (*block != 0) {
        pool_free(f, *block, stream);
        *block = 0;
        return;
    }
    if (pool_try(f->pool, bytes, stream, NULL, block) != SPW_OK &&
        pool_try_anywhere(f, bytes, stream, block, &host_bytes) != SPW_OK) {
        assert_int_equal(*block, 0);
    } else if (!fake_vm_usable(&f->vm, *block, bytes)) {
        fail_msg("a block lies on memory that cannot be used");
    }
    pool_check(f);
}

/* A run that makes every kind of call, on a device with `host` granules beside it; true when the
 * fault was reached. */
static bool run(int fail_call, size_t fail_after, uint64_t host)
{
    struct pool_fixture f;
    uint64_t blocks[BLOCKS] = {0}, random = 2;
    bool reached;

    pool_open_small(&f, 64, LIMIT_GRANULES - host, 50);
    spw_pool_set_host_limit(f.pool, host * GRANULE);
    f.vm.fail_call = fail_call;
    f.vm.fail_after = fail_after;
    f.vm.seed = 7;
    for (int i = 0; i < STEPS; i++) {
        one_step(&f, &random, blocks);
        if (i % 64 == 63) {
            (void)spw_pool_trim(f.pool, draw(&random, LIMIT_GRANULES / 4) * GRANULE);
            pool_check(&f);
        }
        if (i % 100 == 50) {
            (void)spw_pool_refresh_access(f.pool);
            spw_pool_retire_stream(f.pool, &stream_b);
            pool_check(&f);
        }
    }
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i] != 0) {
            pool_free(&f, blocks[i], &stream_a);
        }
    }
    reached = fail_call >= 0 && f.vm.calls[fail_call] > fail_after;
    f.vm.fail_call = -1;
    f.vm.immediate = true;
    fake_vm_complete(&f.vm);
    (void)spw_pool_trim(f.pool, 0);
    (void)spw_pool_trim_host(f.pool);
    pool_check(&f);
    if (!reached) {
        assert_int_equal(f.vm.chunks, 0);
        assert_int_equal(f.vm.host_chunks, 0);
    }
    pool_close(&f);
    return reached;
}

static void sweep_on(enum fake_call call, uint64_t host)
{
    pool_sweep(run, call, host);
}

static void sweep(enum fake_call call)
{
    sweep_on(call, 0);
    /* With a host tier no wait is unbounded, and on a full device there is little to release. */
    if (call != FAKE_WAIT_HOST && call != FAKE_RELEASE) {
        sweep_on(call, HOST_GRANULES);
    }
}

static void test_create(void **state)
{
    sweep(FAKE_CREATE);
}

static void test_release(void **state)
{
    sweep(FAKE_RELEASE);
}

static void test_map(void **state)
{
    sweep(FAKE_MAP);
}

static void test_set_access(void **state)
{
    sweep(FAKE_ACCESS);
}

static void test_unmap(void **state)
{
    sweep(FAKE_UNMAP);
}

static void test_fence(void **state)
{
    sweep(FAKE_FENCE);
}

static void test_query(void **state)
{
    sweep(FAKE_QUERY);
}

static void test_wait_host(void **state)
{
    sweep(FAKE_WAIT_HOST);
}

static void test_wait_soon(void **state)
{
    sweep_on(FAKE_WAIT_SOON, HOST_GRANULES);
}

static void test_wait_stream(void **state)
{
    sweep(FAKE_WAIT_STREAM);
}

static void test_no_fault(void **state)
{
    assert_false(run(-1, 0, 0));
    assert_false(run(-1, 0, HOST_GRANULES));
}

/* ---- one at a time ---- */

static void test_failed_map_gives_everything_back(void **state)
{
    struct pool_fixture f;

    pool_open(&f, 100);
    f.vm.fail_call = FAKE_MAP;
    f.vm.fail_after = 5;
    pool_refuse(&f, 8 * GRANULE, &stream_a, SPW_E_DRIVER - 999);
    assert_int_equal(f.vm.chunks, 8); /* spare, for the next one */
    (void)pool_alloc(&f, 8 * GRANULE, &stream_a);
    assert_int_equal(f.vm.calls[FAKE_CREATE], 8);
    pool_close(&f);
}

static void test_failed_access_gives_everything_back(void **state)
{
    struct pool_fixture f;

    pool_open(&f, 100);
    f.vm.fail_call = FAKE_ACCESS;
    pool_refuse(&f, 8 * GRANULE, &stream_a, SPW_E_DRIVER - 999);
    (void)pool_alloc(&f, 8 * GRANULE, &stream_a);
    assert_int_equal(f.vm.chunks, 8);
    pool_close(&f);
}

/* Mapped without access, and unmap fails: those granules are never used again. */
static void test_granules_beyond_repair(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    pool_open(&f, 0);
    f.vm.fail_call = FAKE_ACCESS;
    f.vm.unmap_fails = true;
    pool_refuse(&f, 8 * GRANULE, &stream_a, SPW_E_DRIVER - 999);
    f.vm.unmap_fails = false;
    address = pool_alloc(&f, 8 * GRANULE, &stream_a);
    assert_int_equal(f.vm.chunks, 16);
    pool_free(&f, address, &stream_a);
    f.vm.immediate = true;
    assert_int_equal(spw_pool_trim(f.pool, 0), 8 * GRANULE);
    pool_check(&f);
    pool_close(&f);
}

static void test_failed_create_is_an_error(void **state)
{
    struct pool_fixture f;

    pool_open(&f, 100);
    f.vm.fail_call = FAKE_CREATE;
    f.vm.fail_after = 3;
    pool_refuse(&f, 8 * GRANULE, &stream_a, SPW_E_NO_MEMORY);
    (void)pool_alloc(&f, 8 * GRANULE, &stream_a);
    assert_int_equal(f.vm.chunks, 8);
    pool_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_fault),
        cmocka_unit_test(test_create),
        cmocka_unit_test(test_release),
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_set_access),
        cmocka_unit_test(test_unmap),
        cmocka_unit_test(test_fence),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_wait_host),
        cmocka_unit_test(test_wait_soon),
        cmocka_unit_test(test_wait_stream),
        cmocka_unit_test(test_failed_map_gives_everything_back),
        cmocka_unit_test(test_failed_access_gives_everything_back),
        cmocka_unit_test(test_granules_beyond_repair),
        cmocka_unit_test(test_failed_create_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
