/* The simulated runtime's address map against a plain array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/runtime/map.h"

enum { KEYS = 700, STEPS = 200000 };

static void *values[KEYS]; /* what the map has to hold; NULL: nothing */

static const void *key_of(size_t i)
{
    /* Some neighbours, some far apart, as functions of one and of several libraries are. */
    return (const void *)(0x5555000000u + (i % 7) * 0x100000000u + i * 16);
}

static size_t expected_count(void)
{
    size_t count = 0;

    for (size_t i = 0; i < KEYS; i++) {
        count += values[i] != NULL;
    }
    return count;
}

static void check_all(const struct simrt_map *map)
{
    for (size_t i = 0; i < KEYS; i++) {
        assert_ptr_equal(simrt_map_get(map, key_of(i)), values[i]);
    }
    assert_int_equal(map->count, expected_count());
}

static bool is_even(const void *value, const void *arg)
{
    return ((uintptr_t)value & 16) == 0;
}

static void test_random_steps(void **state)
{
    struct simrt_map map = {0};
    uint32_t random = 12345;

    for (int step = 0; step < STEPS; step++) {
        random = random * 1664525u + 1013904223u;
        size_t i = (random >> 8) % KEYS;
        if (random >> 31) {
            values[i] = (void *)((uintptr_t)random | 1);
            assert_true(simrt_map_put(&map, key_of(i), values[i]));
        } else {
            values[i] = NULL;
            simrt_map_remove(&map, key_of(i));
        }
        if (step % 5000 == 0) {
            check_all(&map);
        }
    }
    check_all(&map);

    simrt_map_remove_if(&map, is_even, NULL);
    for (size_t i = 0; i < KEYS; i++) {
        if (values[i] != NULL && is_even(values[i], NULL)) {
            values[i] = NULL;
        }
    }
    check_all(&map);
    free(map.slots);
}

static void test_empty(void **state)
{
    struct simrt_map map = {0};

    assert_null(simrt_map_get(&map, &map));
    assert_null(simrt_map_get(&map, NULL));
    simrt_map_remove(&map, &map);
    simrt_map_remove_if(&map, is_even, NULL);
    assert_int_equal(map.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_steps),
        cmocka_unit_test(test_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
