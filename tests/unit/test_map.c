/* The hash map by itself. */
#include "common/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "malloc_faults.h"

enum { KEYS = 5000 };

/* The value of a key in these tests: an address that is never dereferenced. */
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

/* Looks up every key after a third of them is gone: a removal may make another key unreachable. */
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

static bool is_multiple(const void *value, const void *arg)
{
    const uint64_t *divisor = arg;

    return ((uintptr_t)value - 1) / 2 % *divisor == 0;
}

/* Many keys have one home slot, and neighbours match together: each removal moves another match. */
static void test_remove_if_removes_exactly_the_matching_values(void **state)
{
    struct spw_map map = {0};
    const uint64_t divisor = 2;
    size_t left = 0;

    spw_map_remove_if(&map, is_multiple, &divisor);
    for (uint64_t i = 0; i < KEYS; i++) {
        assert_true(spw_map_put(&map, i << 40 | i % 7, value_of(i)));
        left += i % divisor != 0;
    }
    spw_map_remove_if(&map, is_multiple, &divisor);
    assert_int_equal(map.count, left);
    for (uint64_t i = 0; i < KEYS; i++) {
        assert_ptr_equal(spw_map_get(&map, i << 40 | i % 7), i % divisor ? value_of(i) : NULL);
    }
    free(map.slots);
}

/* A value of each slot is given back, whichever slot that is. */
static void test_clear_frees_all_values(void **state)
{
    struct spw_map map = {0};

    live_allocations = 0;
    for (uint64_t i = 0; i < KEYS; i++) {
        assert_true(spw_map_put(&map, i, malloc(1)));
    }
    assert_in_range(map.count, KEYS, map.capacity);
    spw_map_clear(&map);
    assert_int_equal(live_allocations, 0);
    assert_int_equal(map.capacity, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_map_has_nothing),
        cmocka_unit_test(test_put_replaces),
        cmocka_unit_test(test_removal_keeps_the_others_reachable),
        cmocka_unit_test(test_next_visits_each_once),
        cmocka_unit_test(test_remove_if_removes_exactly_the_matching_values),
        cmocka_unit_test(test_clear_frees_all_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
