#include "common/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { KEYS = 5000 };

/* A value made from its key; the address is never read. */
static void *value_of(uint64_t key)
{
    return (void *)(uintptr_t)(key * 2 + 1);
}

static void test_an_empty_map_has_nothing(void **state)
{
    struct spw_map map = {0};
    size_t cursor = 0;

    assert_null(spw_map_get(&map, 0));
    assert_null(spw_map_take(&map, 7));
    assert_null(spw_map_next(&map, &cursor));
}

static void test_put_replaces(void **state)
{
    struct spw_map map = {0};

    assert_true(spw_map_put(&map, 0, value_of(1)));
    assert_true(spw_map_put(&map, 0, value_of(2)));
    assert_ptr_equal(spw_map_get(&map, 0), value_of(2));
    assert_int_equal(map.count, 1);
    assert_ptr_equal(spw_map_take(&map, 0), value_of(2));
    assert_null(spw_map_get(&map, 0));
    free(map.slots);
}

/* Keys close together and far apart come and go; after each step of the second half every key is
 * looked up, so that one that a removal made unreachable is missed. */
static void test_removal_keeps_the_others_reachable(void **state)
{
    struct spw_map map = {0};

    for (uint64_t i = 0; i < KEYS; i++) {
        assert_true(spw_map_put(&map, i % 2 == 0 ? i : i << 40, value_of(i)));
    }
    assert_int_equal(map.count, KEYS);
    for (uint64_t i = 0; i < KEYS; i += 3) {
        assert_ptr_equal(spw_map_take(&map, i % 2 == 0 ? i : i << 40), value_of(i));
    }
    for (uint64_t i = 0; i < KEYS; i++) {
        void *expected = i % 3 == 0 ? NULL : value_of(i);

        assert_ptr_equal(spw_map_get(&map, i % 2 == 0 ? i : i << 40), expected);
    }
    free(map.slots);
}

static void test_next_visits_each_once(void **state)
{
    struct spw_map map = {0};
    uint64_t sum = 0;
    size_t cursor = 0;
    void *value;

    for (uint64_t i = 1; i <= 100; i++) {
        assert_true(spw_map_put(&map, i << 20, value_of(i)));
    }
    while ((value = spw_map_next(&map, &cursor)) != NULL) {
        sum += (uint64_t)(uintptr_t)value;
    }
    assert_int_equal(sum, 100 * 101 + 100);
    free(map.slots);
}

static void test_clear_frees_the_values(void **state)
{
    struct spw_map map = {0};

    for (uint64_t i = 0; i < 200; i++) {
        assert_true(spw_map_put(&map, i, malloc(16)));
    }
    spw_map_clear(&map);
    assert_null(spw_map_get(&map, 3));
    assert_true(spw_map_put(&map, 3, malloc(16)));
    spw_map_clear(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_map_has_nothing),
        cmocka_unit_test(test_put_replaces),
        cmocka_unit_test(test_removal_keeps_the_others_reachable),
        cmocka_unit_test(test_next_visits_each_once),
        cmocka_unit_test(test_clear_frees_the_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
