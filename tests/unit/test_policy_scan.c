#include "policy/scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_places(void **state)
{
    static const char text[] = "{ \"a\" : [1, {\"b\":true}],\"c\":null }";
    static const struct spw_scan_place expected[] = {
        {0, 0, 6}, {2, 8, 5}, {9, 9, 3}, {12, 12, 5}, {13, 17, 5}, {24, 28, 6},
    };
    struct spw_scan scan;

    assert_true(spw_policy_scan(text, strlen(text), &scan));
    assert_int_equal(scan.count, sizeof(expected) / sizeof(*expected));
    assert_memory_equal(scan.places, expected, sizeof(expected));
    free(scan.places);
}

static void test_good_texts(void **state)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "-1.5e+10",
        "1E5",
        " \r\n\t[]\n",
        "{}",
        "\"\\u00e4\\ud83d\\ude00\\n\\/\"",
        "\"\xc3\xa4\xe6\x96\x87\xf0\x9f\x98\x80\x7f\"",
        "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
        "false",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct spw_scan scan;

        if (!spw_policy_scan(texts[i], strlen(texts[i]), &scan)) {
            fail_msg("%s: %s", texts[i], scan.problem);
        }
        free(scan.places);
    }
}

struct bad {
    const char *text;
    size_t at;
    const char *problem;
};

static const struct bad bad[] = {
    {"", 0, "the file is empty, expected '{'"},
    {" \n", 0, "the file is empty, expected '{'"},
    {"\xef\xbb\xbf{}", 0, "a byte order mark, expected '{'"},
    {"{", 1, "the file ends here, expected a key in double quotes"},
    {"{a:1}", 1, "'a', expected a key in double quotes"},
    {"{\"a\" 1}", 5, "'1', expected ':' behind the key"},
    {"{\"a\":}", 5, "'}', expected a value"},
    {"{\"a\":1 \"b\":2}", 7, "'\"', expected ',' or '}'"},
    {"{\"a\":1,}", 7, "'}', expected another key after the comma"},
    {"[1,]", 3, "']', expected another value after the comma"},
    {"[1 2]", 3, "'2', expected ',' or ']'"},
    {"[1", 2, "the file ends here, expected ',' or ']'"},
    {"{} x", 3, "'x', expected the end of the file"},
    {"nul", 0, "'n', expected a value"},
    {"True", 0, "'T', expected a value"},
    {"'a'", 0, "''', expected a value"},
    {"[\x01]", 1, "byte 0x01, expected a value"},
    {"/* */{}", 0, "'/', expected a value"},
    {"-", 1, "the file ends here, expected a digit"},
    {"01", 0, "a number with a leading zero, expected none"},
    {"1.", 2, "the file ends here, expected a digit"},
    {"[1.e5]", 3, "'e', expected a digit"},
    {"1e", 2, "the file ends here, expected a digit"},
    {"\"abc", 4, "the file ends in a string, expected \""},
    {"\"a\nb\"", 2,
     "a line break or control character in a string, expected \" before it, or an "
     "escape such as \\n"},
    {"\"\\x\"", 1, "an unknown escape, expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX"},
    {"\"\\u12g4\"", 1, "\\u without four digits, expected \\u0041"},
    {"\"\\u0000\"", 1, "\\u0000, expected any other character"},
    {"\"\\ud800\"", 1, "half of a surrogate pair, expected both halves"},
    {"\"\\udc00\"", 1, "half of a surrogate pair, expected both halves"},
    {"\"\\ud800\\u0041\"", 1, "half of a surrogate pair, expected both halves"},
    {"\"\xff\"", 1, "byte 0xff is not UTF-8, expected UTF-8 text"},
    {"\"\xc3\"", 1, "byte 0xc3 is not UTF-8, expected UTF-8 text"},
    {"\"\xc0\xaf\"", 1, "byte 0xc0 is not UTF-8, expected UTF-8 text"},
    {"\"\xed\xa0\x80\"", 1, "byte 0xed is not UTF-8, expected UTF-8 text"},
    {"\"\xf5\x80\x80\x80\"", 1, "byte 0xf5 is not UTF-8, expected UTF-8 text"},
    {"\"\xe6\x96", 1, "byte 0xe6 is not UTF-8, expected UTF-8 text"},
    {"[[[[[[[[[[[[[[[[[", 16, "nested too deep, expected at most 16 levels"},
    {"1000000000000000000000000000000000000000000000000000000000000000", 0,
     "a number of more than 63 characters, expected a shorter one"},
};

static void test_bad_texts(void **state)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct spw_scan scan;

        assert_false(spw_policy_scan(bad[i].text, strlen(bad[i].text), &scan));
        assert_string_equal(scan.problem, bad[i].problem);
        assert_int_equal(scan.problem_at, bad[i].at);
        assert_null(scan.places);
    }
}

static void test_a_nul_is_no_end(void **state)
{
    struct spw_scan scan;

    assert_false(spw_policy_scan("{}\0", 3, &scan));
    assert_string_equal(scan.problem, "byte 0x00, expected the end of the file");
    assert_int_equal(scan.problem_at, 2);
}

static void test_cursor(void **state)
{
    static const char text[] = "ab\n\xc3\xa4\xe6\x96\x87x\ny";
    struct spw_scan_cursor cursor = {text, 0, 1, 1};

    spw_policy_scan_advance(&cursor, 1);
    assert_int_equal(cursor.line, 1);
    assert_int_equal(cursor.column, 2);
    spw_policy_scan_advance(&cursor, 8);
    assert_int_equal(cursor.line, 2);
    assert_int_equal(cursor.column, 3);
    spw_policy_scan_advance(&cursor, 10);
    assert_int_equal(cursor.line, 3);
    assert_int_equal(cursor.column, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),    cmocka_unit_test(test_good_texts),
        cmocka_unit_test(test_bad_texts), cmocka_unit_test(test_a_nul_is_no_end),
        cmocka_unit_test(test_cursor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
