/* Text of unknown origin, made fit for a terminal. */
#include "common/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void check(const char *text, const char *keep, const char *expected)
{
    char copy[64];

    snprintf(copy, sizeof(copy), "%s", text);
    spw_utf8_plain(copy, keep);
    assert_string_equal(copy, expected);
}

static void test_commands_of_terminals(void **state)
{
    check("a\033[31mb\007\r\n\t\177", "", "a?[31mb?????");
    check("C1: \xC2\x9B"
          "31m \xC2\x80",
          "", "C1: ?31m ?");
    check("a\n\tb\033", "\n\t", "a\n\tb?");
    check("caf\xC3\xA9 \xC2\xA0 \xE2\x82\xAC \xF0\x9F\x98\x80", "",
          "caf\xC3\xA9 \xC2\xA0 \xE2\x82\xAC \xF0\x9F\x98\x80");
}

/* From U+2027 to U+202F and from U+2065 to U+206A: the first and the last of each are kept. */
static void test_lines_and_directions(void **state)
{
    char text[SPW_UTF8_LONGEST + 1] = {0};

    for (int code = 0x2020; code < 0x2080; code++) {
        bool harmful = (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);

        assert_int_equal(spw_utf8_encode((uint32_t)code, text), 3);
        check(text, "", harmful ? "?" : text);
    }
}

/* Bytes that are no UTF-8, such as the rest of a character that was cut. */
static void test_not_utf8(void **state)
{
    check("a\xE2\x82", "", "a??");
    check("\xFF\xC0\x80\xED\xA0\x80z", "", "??????z");
    check("\xF4\x90\x80\x80", "", "????");
}

/* Every character, and what is none. */
static void test_encode(void **state)
{
    for (uint32_t code = 0; code < 0x120000; code++) {
        bool is_none = code == 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000);
        char text[SPW_UTF8_LONGEST + 1] = {0};
        size_t length = spw_utf8_encode(code, text);

        assert_int_equal(spw_utf8_length(text), length);
        assert_int_equal(spw_utf8_code(text, length), is_none ? 0xFFFD : code);
    }
    assert_int_equal(spw_utf8_encode(UINT32_MAX, (char[SPW_UTF8_LONGEST]){0}), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands_of_terminals),
        cmocka_unit_test(test_encode),
        cmocka_unit_test(test_lines_and_directions),
        cmocka_unit_test(test_not_utf8),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
