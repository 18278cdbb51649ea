#include "submit/state.h"
#include "submit/tensor_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void make(unsigned char *map, uint64_t number)
{
    memset(map, 0x5a, SPW_TENSOR_MAP_BYTES);
    memcpy(map + 40, &number, sizeof(number));
}

static int setup(void **state)
{
    spw_submit_tensor_map_reset();
    return 0;
}

static void test_none(void **state)
{
    unsigned char map[SPW_TENSOR_MAP_BYTES] = {0};

    assert_false(spw_submit_tensor_map_any());
    assert_int_equal(spw_submit_tensor_map_find(map), 0);
}

static void test_found_by_content(void **state)
{
    unsigned char map[SPW_TENSOR_MAP_BYTES + 1], other[SPW_TENSOR_MAP_BYTES];

    make(map + 1, 7);
    spw_submit_tensor_map_add(map + 1, 0x7000);
    assert_true(spw_submit_tensor_map_any());
    make(other, 7);
    assert_int_equal(spw_submit_tensor_map_find(other), 0x7000);
    other[127] ^= 1;
    assert_int_equal(spw_submit_tensor_map_find(other), 0);
}

/* A map with known content is entered again: its address was freed and allocated again. */
static void test_the_last_counts(void **state)
{
    unsigned char map[SPW_TENSOR_MAP_BYTES];

    make(map, 7);
    for (uint64_t i = 1; i < 100; i++) {
        spw_submit_tensor_map_add(map, i << 12);
        assert_int_equal(spw_submit_tensor_map_find(map), i << 12);
    }
}

static void test_the_youngest_are_known(void **state)
{
    enum { MANY = 100000, KNOWN = 4096 };
    unsigned char map[SPW_TENSOR_MAP_BYTES];

    for (uint64_t i = 1; i <= MANY; i++) {
        make(map, i);
        spw_submit_tensor_map_add(map, i << 12);
    }
    for (uint64_t i = MANY - KNOWN + 1; i <= MANY; i++) {
        make(map, i);
        assert_int_equal(spw_submit_tensor_map_find(map), i << 12);
    }
    make(map, MANY - KNOWN);
    assert_int_equal(spw_submit_tensor_map_find(map), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_none, setup),
        cmocka_unit_test_setup(test_found_by_content, setup),
        cmocka_unit_test_setup(test_the_last_counts, setup),
        cmocka_unit_test_setup(test_the_youngest_are_known, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
