#include "cli/launch/preload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const ours[] = {"/b/libspillway.so", "/b/sim/libcuda.so.1"};

static const char *add_to(const char *present, size_t count)
{
    const char *text;

    if (present != NULL) {
        setenv("LD_PRELOAD", present, 1);
    } else {
        unsetenv("LD_PRELOAD");
    }
    spw_cli_preload_add(ours, count);
    text = getenv("LD_PRELOAD");
    return text != NULL ? text : "(not set)";
}

static void test_added_in_front(void **state)
{
    assert_string_equal(add_to(NULL, 1), "/b/libspillway.so");
    assert_string_equal(add_to("", 2), "/b/libspillway.so:/b/sim/libcuda.so.1");
    assert_string_equal(add_to("/x.so", 1), "/b/libspillway.so:/x.so");
    assert_string_equal(add_to("/x.so /y.so", 1), "/b/libspillway.so:/x.so:/y.so");
    assert_string_equal(add_to("::/x.so:", 1), "/b/libspillway.so:/x.so");
}

static void test_sanitizers_stay_first(void **state)
{
    assert_string_equal(add_to("/x.so:/usr/lib/libasan.so.8:/y.so", 1),
                        "/usr/lib/libasan.so.8:/b/libspillway.so:/x.so:/y.so");
    assert_string_equal(add_to("/l/libclang_rt.asan-x86_64.so", 1),
                        "/l/libclang_rt.asan-x86_64.so:/b/libspillway.so");
    assert_string_equal(add_to("libtsan.so.2", 1), "libtsan.so.2:/b/libspillway.so");
}

static void test_not_repeated(void **state)
{
    assert_string_equal(add_to("/b/libspillway.so:/x.so", 1), "/b/libspillway.so:/x.so");
    assert_string_equal(add_to("/x.so:/older/libspillway.so", 1), "/b/libspillway.so:/x.so");
}

static void test_removed(void **state)
{
    setenv("LD_PRELOAD", "/x.so:/b/libspillway.so:/b/sim/libcuda.so.1", 1);
    assert_true(spw_cli_preload_remove("libspillway.so"));
    assert_string_equal(getenv("LD_PRELOAD"), "/x.so:/b/sim/libcuda.so.1");
    assert_false(spw_cli_preload_remove("libspillway.so"));
    setenv("LD_PRELOAD", "/b/libspillway.so", 1);
    assert_true(spw_cli_preload_remove("libspillway.so"));
    assert_null(getenv("LD_PRELOAD"));
    assert_false(spw_cli_preload_remove("libspillway.so"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_added_in_front),
        cmocka_unit_test(test_sanitizers_stay_first),
        cmocka_unit_test(test_not_repeated),
        cmocka_unit_test(test_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
