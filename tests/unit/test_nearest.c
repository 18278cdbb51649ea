#include "common/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *const words[] = {"memory", "mode", "profile", "devices", "seed"};

static const char *nearest(const char *name)
{
    return spw_nearest(name, 0, words, sizeof(words) / sizeof(*words));
}

static void test_near(void **state)
{
    assert_string_equal(nearest("memory"), "memory");
    assert_string_equal(nearest("memroy"), "memory");
    assert_string_equal(nearest("MEMORY"), "memory");
    assert_string_equal(nearest("moed"), "mode");
    assert_string_equal(nearest("ssed"), "seed");
    assert_string_equal(spw_nearest("rnu", 0, (const char *[]){"sim", "run"}, 2), "run");
    assert_string_equal(nearest("device"), "devices");
    assert_string_equal(nearest("prof"), "profile"); /* an abbreviation */
    assert_string_equal(nearest("file"), "profile");
    assert_null(nearest("ile"));
    assert_string_equal(
        spw_nearest("h100", 0, (const char *[]){"h100-pcie", "h100-80g", "h100-94g"}, 3),
        "h100-80g");
}

static void test_far(void **state)
{
    char endless[1000];

    memset(endless, 'm', sizeof(endless) - 1);
    endless[sizeof(endless) - 1] = '\0';
    assert_null(nearest("policy-file"));
    assert_null(nearest("xyz"));
    assert_null(spw_nearest("HOST_NUMA", 0, (const char *[]){"HOST_MEMORY"}, 1));
    assert_null(nearest(""));
    assert_null(nearest(endless));
    assert_null(spw_nearest("memory", 0, words, 0));
}

static void test_prefix_is_not_compared(void **state)
{
    static const char *const names[] = {"SPILLWAY_LIMIT", "SPILLWAY_LOG"};

    assert_string_equal(spw_nearest("SPILLWAY_LIMT", 9, names, 2), "SPILLWAY_LIMIT");
    assert_null(spw_nearest("SPILLWAY_TEMPER", 9, names, 2));
    assert_null(spw_nearest("SPILL", 9, names, 2)); /* shorter than the prefix */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_near),
        cmocka_unit_test(test_far),
        cmocka_unit_test(test_prefix_is_not_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
