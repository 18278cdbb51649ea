#include "common/size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)

static void expect_bytes(const char *text, uint64_t expected)
{
    uint64_t bytes = 0;
    bool percent = true;

    if (!spw_size_parse(text, &bytes, &percent)) {
        fail_msg("\"%s\" was refused", text);
    }
    assert_false(percent);
    assert_int_equal(bytes, expected);
}

static void test_bytes_and_units(void **state)
{
    expect_bytes("0", 0);
    expect_bytes("123", 123);
    expect_bytes("17B", 17);
    expect_bytes("1K", KIB);
    expect_bytes("96KiB", 96 * KIB);
    expect_bytes("512MiB", 512 * MIB);
    expect_bytes("512 MiB", 512 * MIB);
    expect_bytes(" 8GiB\t", 8 * GIB);
    expect_bytes("8g", 8 * GIB);
    expect_bytes("8gib", 8 * GIB);
    expect_bytes("24GB", 24 * GIB);
    expect_bytes("24 gb", 24 * GIB);
    expect_bytes("1.5mb", MIB + MIB / 2);
    expect_bytes("3T", 3 * 1024 * GIB);
    expect_bytes("18446744073709551615", UINT64_MAX);
}

static void test_fractions(void **state)
{
    expect_bytes("1.5G", GIB + GIB / 2);
    expect_bytes("0.5 KiB", 512);
    expect_bytes("0.25M", 256 * KIB);
    expect_bytes("1.0000000009G", GIB); /* beyond a millionth of the unit */
}

static void test_percentages(void **state)
{
    static const struct {
        const char *text;
        uint64_t permille;
    } cases[] = {{"80%", 800}, {"12.5%", 125}, {"0%", 0}, {"100 %", 1000}, {"150%", 1500}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint64_t permille = 0;
        bool percent = false;

        assert_true(spw_size_parse(cases[i].text, &permille, &percent));
        assert_true(percent);
        assert_int_equal(permille, cases[i].permille);
    }
}

static void test_refused(void **state)
{
    static const char *const texts[] = {
        "",          " ",
        "GiB",       "-1",
        "-1GiB",     "+1",
        "12Gigs",    "8Gb/s",
        "8 Gi B",    "1.5",
        "1.5B",      "1.G",
        ".5G",       "1e9",
        "0x10",      "8GiB/s",
        "80%%",      "8 GiB 1",
        "1,5GiB",    "18446744073709551616",
        "16777216T", "99999999999999999999999",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        uint64_t bytes = 42;
        bool percent = true;

        if (spw_size_parse(texts[i], &bytes, &percent)) {
            fail_msg("\"%s\" was taken", texts[i]);
        }
        assert_int_equal(bytes, 42); /* outputs stay as they were */
        assert_true(percent);
    }
}

static void test_text(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {17, "17 B"},
        {1023, "1023 B"},
        {KIB, "1 KiB"},
        {96 * KIB, "96 KiB"},
        {512 * MIB, "512 MiB"},
        {1536, "1.50 KiB"},
        {GIB - 1, "1.00 GiB"},
        {5529822659, "5.15 GiB"},
        {GIB + 1, "1.00 GiB"},
        {700 * GIB, "700 GiB"},
        {2048 * GIB, "2 TiB"},
        {UINT64_MAX, "16777216.00 TiB"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[SPW_SIZE_TEXT];

        assert_string_equal(spw_size_text(cases[i].bytes, text), cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_and_units),
        cmocka_unit_test(test_fractions),
        cmocka_unit_test(test_percentages),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
