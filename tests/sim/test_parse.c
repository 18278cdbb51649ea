/* Sizes and numbers in variables. The launcher reads the same sizes by code of its own, for the
 * simulated GPU stands alone: the two must agree. */
#include "check.h"

#include "common/size.h"
#include "sim/driver/core/parse.h"

static const char *const texts[] = {
    /* clang-format off */
    "0", "1", "1048576", "4096B", "8GiB", "8G", "8g", "1.5GiB", "0.25 MiB", " 12 KiB ", "12KiB ",
    "1.000001T", "80%", "12.5%", "0.1%", "1000%", "18446744073709551615", "16777215T",
    "", "GiB", "-1", "+1", "1.", ".5G", "1.5", "1.5B", "8GB", "8 G iB", "8Gi", "8GiBx", "1e9",
    "1,5G", "18446744073709551616", "16777216T", "99999999999999999999999", "% ", "1%%", "12 %",
    /* clang-format on */
};

static void test_agrees_with_the_launcher(void **state)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct sim_size size = {0};
        uint64_t expected = 0;
        bool percent = false;
        bool valid = spw_size_parse(texts[i], &expected, &percent);

        print_message("\"%s\"\n", texts[i]);
        assert_int_equal(sim_parse_size(texts[i], &size), valid);
        if (valid) {
            assert_int_equal(percent ? size.permille : size.bytes, expected);
            assert_int_equal(size.permille != 0, percent);
        }
    }
}

static void test_sizes(void **state)
{
    struct sim_size size;

    assert_true(sim_parse_size("1.5GiB", &size));
    assert_int_equal(sim_size_of(&size, 7), 3 * GIB / 2);
    assert_true(sim_parse_size("12.5%", &size));
    assert_int_equal(sim_size_of(&size, 80 * GIB), 10 * GIB);
    assert_int_equal(sim_size_of(&size, 1001), 125);
    assert_false(sim_parse_size("0%", &size));
}

static void test_numbers(void **state)
{
    uint64_t value = 7;

    assert_true(sim_parse_number("18446744073709551615", &value));
    assert_int_equal(value, UINT64_MAX);
    assert_true(sim_parse_number("0", &value));
    assert_int_equal(value, 0);
    assert_false(sim_parse_number("", &value));
    assert_false(sim_parse_number("1.0", &value));
    assert_false(sim_parse_number("12x", &value));
    assert_false(sim_parse_number("-3", &value));
    assert_false(sim_parse_number("18446744073709551616", &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_the_launcher),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
