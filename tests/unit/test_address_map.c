#include "pool/extents/address_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_empty(void **state)
{
    struct spw_address_map map = {0};

    assert_null(spw_pool_address_map_get(&map, 512));
    assert_null(spw_pool_address_map_take(&map, 512));
    spw_pool_address_map_fini(&map);
}

static void test_put_and_take(void **state)
{
    struct spw_address_map map = {0};
    struct spw_extent extent = {.address = 1ull << 40};

    assert_true(spw_pool_address_map_reserve(&map));
    spw_pool_address_map_put(&map, &extent);
    assert_ptr_equal(spw_pool_address_map_get(&map, extent.address), &extent);
    assert_null(spw_pool_address_map_get(&map, extent.address + 512));
    assert_null(spw_pool_address_map_get(&map, 0));
    assert_ptr_equal(spw_pool_address_map_take(&map, extent.address), &extent);
    assert_null(spw_pool_address_map_take(&map, extent.address));
    assert_int_equal(map.count, 0);
    spw_pool_address_map_fini(&map);
}

/* Dense and regular addresses, put and taken at random, compared with a plain table. */
static void test_against_table(void **state)
{
    enum { COUNT = 1 << 16 };
    struct spw_extent *extents = calloc(COUNT, sizeof(*extents));
    bool *inside = calloc(COUNT, sizeof(*inside));
    struct spw_address_map map = {0};
    uint64_t random = 1;
    size_t count = 0;

    for (size_t i = 0; i < COUNT; i++) {
        extents[i].address = (1ull << 40) + i * (i % 2 != 0 ? 512 : 2 << 20);
    }
    for (int round = 0; round < 1000000; round++) {
        size_t i;

        random = random * 6364136223846793005ull + 1442695040888963407ull;
        i = (random >> 33) % COUNT;
        if (inside[i]) {
            assert_ptr_equal(spw_pool_address_map_get(&map, extents[i].address), &extents[i]);
            assert_ptr_equal(spw_pool_address_map_take(&map, extents[i].address), &extents[i]);
            count--;
        } else {
            assert_null(spw_pool_address_map_get(&map, extents[i].address));
            assert_true(spw_pool_address_map_reserve(&map));
            spw_pool_address_map_put(&map, &extents[i]);
            count++;
        }
        inside[i] = !inside[i];
    }
    assert_int_equal(map.count, count);
    for (size_t i = 0; i < COUNT; i++) {
        assert_ptr_equal(spw_pool_address_map_get(&map, extents[i].address),
                         inside[i] ? &extents[i] : NULL);
    }
    spw_pool_address_map_fini(&map);
    free(extents);
    free(inside);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_put_and_take),
        cmocka_unit_test(test_against_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
