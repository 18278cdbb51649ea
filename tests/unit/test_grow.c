/* Arrays that grow: what they hold stays, and without memory they stay whole. */
#include "common/grow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "malloc_faults.h"

static void test_grow(void **state)
{
    uint32_t *numbers = NULL;
    size_t capacity = 0;

    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(SPW_GROW(&numbers, &capacity, i + 1));
        assert_true(capacity > i);
        numbers[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(numbers[i], i);
    }
    assert_true(capacity < 2000);
    calls_until_failure = 1;
    assert_false(SPW_GROW(&numbers, &capacity, 2000));
    assert_true(capacity < 2000);
    assert_int_equal(numbers[999], 999);
    free(numbers);
}

static void test_resize(void **state)
{
    char *text = NULL;

    assert_true(SPW_RESIZE(&text, 2));
    text[0] = 'a';
    text[1] = '\0';
    calls_until_failure = 1;
    assert_false(SPW_RESIZE(&text, 3));
    assert_true(SPW_RESIZE(&text, 1 << 20));
    assert_string_equal(text, "a");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_resize),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
