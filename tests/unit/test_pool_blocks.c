/* Blocks: sizes, addresses, identity, and queries about them. */
#include "pool_fixture.h"

#include <stdlib.h>
#include <string.h>

static void expect_block(struct pool_fixture *f, uint64_t address, uint64_t expected_address,
                         uint64_t expected_bytes)
{
    struct spw_block block = {0};

    assert_true(spw_pool_find(f->pool, address, &block));
    assert_int_equal(block.address, expected_address);
    assert_int_equal(block.bytes, expected_bytes);
}

static void expect_none(struct pool_fixture *f, uint64_t address)
{
    struct spw_block block = {.bytes = 4711};

    assert_false(spw_pool_find(f->pool, address, &block));
    assert_int_equal(block.bytes, 4711);
}

static void test_find(void **state)
{
    static const uint64_t sizes[] = {1, 511, 512, 513, 4096, 4097, 100000, 5 * GRANULE + 1};
    struct pool_fixture f;

    pool_open(&f, 100);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint64_t size = sizes[i], address = pool_alloc(&f, size, &stream_a);

        expect_block(&f, address, address, size);
        expect_block(&f, address + size / 2, address, size);
        expect_block(&f, address + size - 1, address, size);
        if (size % 512 != 0) {
            expect_none(&f, address + size); /* one past the end, and inside the rounded part */
        }
        pool_free(&f, address, &stream_a);
        expect_none(&f, address);
        expect_none(&f, address + size / 2);
    }
    pool_close(&f);
}

static void test_find_among_neighbours(void **state)
{
    struct pool_fixture f;
    uint64_t first, second, third;

    pool_open(&f, 100);
    first = pool_alloc(&f, 8192, &stream_a);
    second = pool_alloc(&f, 8192, &stream_a);
    third = pool_alloc(&f, 8192, &stream_a);
    assert_int_equal(second, first + 8192);
    expect_block(&f, first + 8191, first, 8192);
    expect_block(&f, first + 8192, second, 8192);
    pool_free(&f, second, &stream_a);
    expect_none(&f, second);
    expect_none(&f, second + 8191);
    expect_block(&f, third, third, 8192);
    expect_none(&f, third + 8192);
    pool_close(&f);
}

/* Sizes from 512 bytes to 32 MiB, small ones more often. */
static uint64_t churn_size(uint32_t random)
{
    return 1 + (random >> 8) % (512u << random % 17);
}

static void test_find_in_churn(void **state)
{
    enum { BLOCKS = 400, ROUNDS = 20000 };
    static uint64_t blocks[BLOCKS], bytes[BLOCKS];
    struct pool_fixture f;
    uint32_t random = 1;

    pool_open(&f, 100);
    memset(blocks, 0, sizeof(blocks));
    for (int i = 0; i < ROUNDS; i++) {
        size_t changed, asked;

        random = random * 1664525 + 1013904223;
        changed = (random >> 16) % BLOCKS;
        if (blocks[changed] != 0) {
            assert_int_equal(spw_pool_free(f.pool, blocks[changed], &stream_a), SPW_OK);
            expect_none(&f, blocks[changed] + bytes[changed] / 2);
        }
        bytes[changed] = churn_size(random);
        assert_int_equal(pool_try(f.pool, bytes[changed], &stream_a, NULL, &blocks[changed]),
                         SPW_OK);
        asked = random % BLOCKS;
        if (blocks[asked] != 0) {
            expect_block(&f, blocks[asked] + random % bytes[asked], blocks[asked], bytes[asked]);
        }
    }
    pool_check(&f);
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i] != 0) {
            pool_free(&f, blocks[i], &stream_a);
        }
    }
    pool_close(&f);
}

static void test_find_outside(void **state)
{
    struct pool_fixture f;

    pool_open(&f, 100);
    (void)pool_alloc(&f, 8192, &stream_a);
    expect_none(&f, 0);
    expect_none(&f, f.vm.base - 1);
    expect_none(&f, f.vm.base); /* the small heap is empty */
    expect_none(&f, f.vm.base + f.vm.bytes - 1);
    expect_none(&f, f.vm.base + f.vm.bytes);
    expect_none(&f, UINT64_MAX);
    assert_false(spw_pool_owns(f.pool, f.vm.base - 1));
    assert_true(spw_pool_owns(f.pool, f.vm.base));
    assert_true(spw_pool_owns(f.pool, f.vm.base + (64ull << 30) - 1));
    assert_false(spw_pool_owns(f.pool, f.vm.base + (64ull << 30)));
    pool_close(&f);
}

static void test_ids_never_repeat(void **state)
{
    struct pool_fixture f;
    uint64_t last = 0;
    char context;

    pool_open(&f, 100);
    for (int i = 0; i < 100; i++) {
        struct spw_block block;
        uint64_t address = 0;

        assert_int_equal(pool_try(f.pool, 1000, i % 2 != 0 ? &stream_a : NULL, &context, &address),
                         SPW_OK);
        assert_true(spw_pool_find(f.pool, address, &block));
        assert_true(block.id > last);
        assert_ptr_equal(block.context, &context);
        last = block.id;
        pool_free(&f, address, i % 3 != 0 ? &stream_a : NULL);
    }
    pool_close(&f);
}

static void test_foreign_frees(void **state)
{
    struct pool_fixture f;
    uint64_t address;

    pool_open(&f, 100);
    address = pool_alloc(&f, 10000, &stream_a);
    assert_int_equal(spw_pool_free(f.pool, 0, NULL), SPW_E_NOT_OURS);
    assert_int_equal(spw_pool_free(f.pool, address + 512, &stream_a), SPW_E_NOT_OURS);
    assert_int_equal(spw_pool_free(f.pool, f.vm.base + f.vm.bytes, &stream_a), SPW_E_NOT_OURS);
    pool_free(&f, address, &stream_a);
    assert_int_equal(spw_pool_free(f.pool, address, &stream_a), SPW_E_NOT_OURS);
    assert_int_equal(spw_counter_get(&f.counters.frees), 1);
    pool_check(&f);
    pool_close(&f);
}

static void test_impossible_sizes(void **state)
{
    struct pool_fixture f;

    pool_open_small(&f, 64, 1 << 20, 100);
    pool_refuse(&f, 0, &stream_a, SPW_E_INVAL);
    pool_refuse(&f, UINT64_MAX, &stream_a, SPW_E_LIMIT);
    pool_refuse(&f, UINT64_MAX - 510, NULL, SPW_E_LIMIT);
    pool_refuse(&f, 64ull * GRANULE + 1, &stream_a, SPW_E_LIMIT);
    pool_refuse(&f, 64ull * GRANULE, &stream_a, SPW_E_NO_MEMORY); /* too few addresses */
    assert_int_equal(f.vm.calls[FAKE_CREATE], 0);
    pool_close(&f);
}

static void test_rounding(void **state)
{
    static const uint64_t sizes[][2] = {
        {1, 512},     {511, 512},   {512, 512},         {513, 1024},
        {4096, 4096}, {4097, 4608}, {GRANULE, GRANULE}, {GRANULE + 1, GRANULE + 512}};
    struct pool_fixture f;

    pool_open(&f, 100);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint64_t address = pool_alloc(&f, sizes[i][0], &stream_a);

        assert_int_equal(spw_counter_get(&f.counters.live_bytes), sizes[i][1]);
        pool_free(&f, address, &stream_a);
        assert_int_equal(spw_counter_get(&f.counters.live_bytes), 0);
    }
    assert_int_equal(spw_counter_get(&f.counters.live_peak_bytes), GRANULE + 512);
    pool_close(&f);
}

/* A long-lived small block must not keep a granule backed among large ones. */
static void test_small_blocks_live_apart(void **state)
{
    struct pool_fixture f;
    uint64_t large, small;

    pool_open(&f, 100);
    f.vm.immediate = true;
    large = pool_alloc(&f, GRANULE / 2, &stream_a);
    small = pool_alloc(&f, 4096, &stream_a);
    assert_true(small / GRANULE != large / GRANULE);
    assert_int_equal(pool_alloc(&f, 4097, &stream_a), large + GRANULE / 2);
    assert_int_equal(pool_alloc(&f, 1, &stream_a), small + 4096);
    pool_close(&f);
}

static void test_large_blocks_at_the_high_end(void **state)
{
    struct pool_fixture f;
    uint64_t whole;

    pool_open(&f, 0);
    whole = pool_alloc(&f, 32 * GRANULE, &stream_a);
    pool_free(&f, whole, &stream_a);
    assert_int_equal(pool_alloc(&f, GRANULE / 2, &stream_a), whole);
    assert_int_equal(pool_alloc(&f, 8 * GRANULE, &stream_a), whole + 24 * GRANULE);
    assert_int_equal(pool_alloc(&f, GRANULE, &stream_a), whole + GRANULE / 2);
    pool_close(&f);
}

static void test_best_fit(void **state)
{
    struct pool_fixture f;
    uint64_t blocks[6];

    pool_open(&f, 100);
    for (int i = 0; i < 6; i++) {
        blocks[i] = pool_alloc(&f, (uint64_t)(60 - 8 * i) * 1024, &stream_a);
    }
    pool_free(&f, blocks[0], &stream_a); /* 60 KiB */
    pool_free(&f, blocks[2], &stream_a); /* 44 KiB */
    pool_free(&f, blocks[4], &stream_a); /* 28 KiB */
    assert_int_equal(pool_alloc(&f, 40 * 1024, &stream_a), blocks[2]);
    assert_int_equal(pool_alloc(&f, 20 * 1024, &stream_a), blocks[4]);
    assert_int_equal(pool_alloc(&f, 60 * 1024, &stream_a), blocks[0]);
    pool_close(&f);
}

/* ---- addresses ---- */

static void test_arena_runs_out(void **state)
{
    struct pool_fixture f;
    uint64_t blocks[14];

    pool_open_small(&f, 16, 1 << 20, 100); /* two of these granules are for small blocks */
    for (int i = 0; i < 14; i++) {
        blocks[i] = pool_alloc(&f, GRANULE, &stream_a);
    }
    pool_refuse(&f, GRANULE, &stream_a, SPW_E_NO_MEMORY);
    pool_refuse(&f, GRANULE, NULL, SPW_E_NO_MEMORY);
    (void)pool_alloc(&f, 100, &stream_a);
    pool_free(&f, blocks[3], &stream_b);
    pool_free(&f, blocks[4], &stream_b);
    assert_int_equal(pool_alloc(&f, GRANULE, &stream_a), blocks[3]); /* waits in stream order */
    assert_int_equal(pool_alloc(&f, GRANULE, NULL), blocks[4]);      /* waits on the host */
    assert_int_equal(f.vm.calls[FAKE_WAIT_STREAM], 1);
    assert_int_equal(f.vm.calls[FAKE_WAIT_HOST], 1);
    pool_close(&f);
}

/* Addresses with pending work on two streams, which no single wait frees. */
static void test_arena_waits_for_both(void **state)
{
    struct pool_fixture f;
    uint64_t low, high;

    pool_open_small(&f, 16, 1 << 20, 1000);
    low = pool_alloc(&f, 7 * GRANULE, &stream_a);
    high = pool_alloc(&f, 7 * GRANULE, &stream_b);
    pool_free(&f, low, &stream_a);
    pool_free(&f, high, &stream_b);
    assert_int_equal(pool_alloc(&f, 14 * GRANULE, &stream_c), low);
    pool_close(&f);
}

/* ---- many ---- */

static int by_random(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a * 0x9e3779b97f4a7c15ull;
    uint64_t y = *(const uint64_t *)b * 0x9e3779b97f4a7c15ull;

    return x < y ? -1 : x > y;
}

static void test_hundred_thousand_blocks(void **state)
{
    enum { COUNT = 100000 };
    uint64_t *addresses = malloc(COUNT * sizeof(*addresses));
    struct pool_fixture f;
    uint64_t live = 0;

    pool_open(&f, 100);
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t bytes = (i * 2654435761u) % (i % 10 == 0 ? 100000 : 4000) + 1;

        assert_int_equal(pool_try(f.pool, bytes, &stream_a, NULL, &addresses[i]), SPW_OK);
        live += (bytes + 511) / 512 * 512;
    }
    pool_check(&f);
    assert_int_equal(spw_counter_get(&f.counters.live_bytes), live);
    qsort(addresses, COUNT, sizeof(*addresses), by_random);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(spw_pool_free(f.pool, addresses[i], &stream_a), SPW_OK);
        if (i % 20000 == 0) {
            pool_check(&f);
        }
    }
    assert_int_equal(spw_counter_get(&f.counters.live_bytes), 0);
    f.vm.immediate = true;
    (void)spw_pool_trim(f.pool, 0);
    assert_int_equal(f.vm.chunks, 0);
    free(addresses);
    pool_close(&f);
}

static void test_usage(void **state)
{
    struct pool_fixture f;
    struct spw_pool_usage usage;
    uint64_t address;

    pool_open_small(&f, 64, 32, 100);
    spw_pool_usage(f.pool, &usage);
    assert_int_equal(usage.limit, 32 * GRANULE);
    assert_int_equal(usage.committed + usage.spare + usage.largest_free + usage.live, 0);
    address = pool_alloc(&f, 5 * GRANULE, &stream_a);
    (void)pool_alloc(&f, GRANULE / 4, &stream_a);
    pool_free(&f, address, &stream_a);
    spw_pool_usage(f.pool, &usage);
    assert_int_equal(usage.live, GRANULE / 4);
    assert_int_equal(usage.committed, 6 * GRANULE);
    assert_int_equal(usage.spare, 6 * GRANULE - GRANULE / 4);
    assert_int_equal(usage.largest_free, 5 * GRANULE);
    assert_int_equal(spw_counter_get(&f.counters.reserved_peak_bytes), 6 * GRANULE);
    f.vm.immediate = true;
    assert_int_equal(spw_pool_trim(f.pool, 0), 5 * GRANULE);
    assert_int_equal(spw_counter_get(&f.counters.reserved_peak_bytes), 6 * GRANULE);
    spw_pool_reset_reserved_peak(f.pool);
    assert_int_equal(spw_counter_get(&f.counters.reserved_peak_bytes), GRANULE);
    pool_close(&f);
}

/* ---- life ---- */

static void test_abandoned_pool_calls_nothing(void **state)
{
    struct pool_fixture f;
    size_t calls;

    pool_open(&f, 100);
    pool_free(&f, pool_alloc(&f, GRANULE, &stream_a), &stream_a);
    spw_pool_lock(f.pool);
    spw_pool_unlock(f.pool);
    calls = fake_vm_calls(&f.vm);
    spw_pool_abandon(f.pool);
    spw_pool_abandon(NULL);
    spw_pool_destroy(NULL);
    assert_int_equal(fake_vm_calls(&f.vm), calls);
    assert_int_equal(f.vm.chunks, 1);
    fake_vm_fini(&f.vm);
}

static void test_no_arena_no_pool(void **state)
{
    struct spw_pool_config config = {
        .granule_bytes = GRANULE, .arena_bytes = 16 * GRANULE, .limit_bytes = GRANULE};
    struct spw_counters counters = {0};
    struct spw_pool *pool = NULL;
    struct fake_vm vm;

    fake_vm_init(&vm);
    vm.fail_call = FAKE_RESERVE;
    assert_int_equal(spw_pool_create(&config, &vm.seam, &counters, &pool), SPW_E_NO_MEMORY);
    assert_null(pool);
    fake_vm_fini(&vm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_find_among_neighbours),
        cmocka_unit_test(test_find_in_churn),
        cmocka_unit_test(test_find_outside),
        cmocka_unit_test(test_ids_never_repeat),
        cmocka_unit_test(test_foreign_frees),
        cmocka_unit_test(test_impossible_sizes),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_small_blocks_live_apart),
        cmocka_unit_test(test_large_blocks_at_the_high_end),
        cmocka_unit_test(test_best_fit),
        cmocka_unit_test(test_arena_runs_out),
        cmocka_unit_test(test_arena_waits_for_both),
        cmocka_unit_test(test_hundred_thousand_blocks),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_abandoned_pool_calls_nothing),
        cmocka_unit_test(test_no_arena_no_pool),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
