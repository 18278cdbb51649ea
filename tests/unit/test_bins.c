#include "pool/extents/bins.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 512 };

static uint64_t random_state = 1;

static uint64_t draw(uint64_t bound)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (random_state >> 33) % bound;
}

static struct spw_extent extent_of(uint64_t address, uint64_t units)
{
    return (struct spw_extent){.address = address, .bytes = units * SPW_UNIT_BYTES};
}

static void test_empty(void **state)
{
    struct spw_bins bins = {0};

    assert_null(spw_pool_bins_best(&bins, SPW_UNIT_BYTES));
    assert_null(spw_pool_bins_best(&bins, 1ull << 49));
    assert_int_equal(spw_pool_bins_largest(&bins), 0);
}

static void test_one(void **state)
{
    static const uint64_t units[] = {1, 31, 32, 33, 63, 64, 65, 4096, 123457, 1ull << 40};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        struct spw_bins bins = {0};
        struct spw_extent extent = extent_of(0, units[i]);

        spw_pool_bins_insert(&bins, &extent);
        assert_ptr_equal(spw_pool_bins_best(&bins, SPW_UNIT_BYTES), &extent);
        assert_ptr_equal(spw_pool_bins_best(&bins, extent.bytes), &extent);
        assert_null(spw_pool_bins_best(&bins, extent.bytes + SPW_UNIT_BYTES));
        assert_int_equal(spw_pool_bins_largest(&bins), extent.bytes);
        spw_pool_bins_remove(&bins, &extent);
        assert_null(spw_pool_bins_best(&bins, SPW_UNIT_BYTES));
        assert_int_equal(bins.levels, 0);
    }
}

static void test_smallest_that_fits(void **state)
{
    struct spw_bins bins = {0};
    struct spw_extent extents[] = {extent_of(1, 100), extent_of(2, 90), extent_of(3, 40),
                                   extent_of(4, 1000)};

    for (int i = 0; i < 4; i++) {
        spw_pool_bins_insert(&bins, &extents[i]);
    }
    assert_ptr_equal(spw_pool_bins_best(&bins, 41 * SPW_UNIT_BYTES), &extents[1]);
    assert_ptr_equal(spw_pool_bins_best(&bins, 90 * SPW_UNIT_BYTES), &extents[1]);
    assert_ptr_equal(spw_pool_bins_best(&bins, 91 * SPW_UNIT_BYTES), &extents[0]);
    assert_ptr_equal(spw_pool_bins_best(&bins, 101 * SPW_UNIT_BYTES), &extents[3]);
    assert_ptr_equal(spw_pool_bins_best(&bins, 40 * SPW_UNIT_BYTES), &extents[2]);
}

static void test_lowest_address_of_equals(void **state)
{
    struct spw_bins bins = {0};
    struct spw_extent extents[] = {extent_of(300, 64), extent_of(100, 64), extent_of(200, 64)};

    for (int i = 0; i < 3; i++) {
        spw_pool_bins_insert(&bins, &extents[i]);
    }
    assert_ptr_equal(spw_pool_bins_best(&bins, 64 * SPW_UNIT_BYTES), &extents[1]);
    spw_pool_bins_remove(&bins, &extents[1]);
    assert_ptr_equal(spw_pool_bins_best(&bins, 64 * SPW_UNIT_BYTES), &extents[2]);
}

static uint64_t draw_units(void)
{
    return 1 + draw(1ull << draw(30));
}

/* Compared with a search of all extents: the result fits; if some extent fits, one is found, in a
 * bin no higher than that of the best one; removed extents are never found. */
static void test_against_search(void **state)
{
    static struct spw_extent extents[COUNT];
    static bool inside[COUNT];
    struct spw_bins bins = {0};

    for (int round = 0; round < 100000; round++) {
        size_t i = draw(COUNT);
        uint64_t bytes = draw_units() * SPW_UNIT_BYTES, largest = 0, best = UINT64_MAX;
        struct spw_extent *found;

        if (inside[i]) {
            spw_pool_bins_remove(&bins, &extents[i]);
        } else {
            extents[i] = extent_of(i, draw_units());
            spw_pool_bins_insert(&bins, &extents[i]);
        }
        inside[i] = !inside[i];
        if (round % 16 != 0) {
            continue;
        }
        for (size_t k = 0; k < COUNT; k++) {
            if (inside[k]) {
                largest = extents[k].bytes > largest ? extents[k].bytes : largest;
                if (extents[k].bytes >= bytes && extents[k].bytes < best) {
                    best = extents[k].bytes;
                }
            }
        }
        assert_int_equal(spw_pool_bins_largest(&bins), largest);
        found = spw_pool_bins_best(&bins, bytes);
        if (best == UINT64_MAX) {
            assert_null(found);
            continue;
        }
        assert_non_null(found);
        assert_true(inside[found - extents]);
        assert_true(found->bytes >= bytes);
        assert_true(found->bytes <= best + best / 16 + SPW_UNIT_BYTES); /* two parts of 32 */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_smallest_that_fits),
        cmocka_unit_test(test_lowest_address_of_equals),
        cmocka_unit_test(test_against_search),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
