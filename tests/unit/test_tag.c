#include "callsite/tag.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *name)
{
    assert_string_equal(spw_callsite_this_tag.name, name);
    assert_int_equal(spw_callsite_this_tag.hash != 0, *name != '\0');
}

static void test_names(void **state)
{
    static const char *const wrong[] = {"a\nb", "\x7f", "\xc2\x85", "\xff", "caf\xc3"};
    char name[SPW_CALLSITE_TAG + 1] = "";

    expect("");
    memset(name, 'x', SPW_CALLSITE_TAG);
    assert_false(spw_callsite_tag_set(name));
    expect("");
    name[SPW_CALLSITE_TAG - 1] = '\0';
    assert_true(spw_callsite_tag_set(name));
    expect(name);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(spw_callsite_tag_set(wrong[i]));
        expect(name);
    }
    assert_true(spw_callsite_tag_set("kv cache \xc3\xa9"));
    expect("kv cache \xc3\xa9");
    assert_true(spw_callsite_tag_set(""));
    expect("");
    assert_true(spw_callsite_tag_set("a"));
    assert_true(spw_callsite_tag_set(NULL));
    expect("");
}

static void test_hashes(void **state)
{
    uint64_t first, second;

    assert_true(spw_callsite_tag_set("first"));
    first = spw_callsite_this_tag.hash;
    assert_true(spw_callsite_tag_set("second"));
    second = spw_callsite_this_tag.hash;
    assert_true(first != second);
    assert_true(spw_callsite_tag_set("first"));
    assert_true(spw_callsite_this_tag.hash == first);
}

static void *other_thread(void *unused)
{
    expect("");
    assert_true(spw_callsite_tag_set("other"));
    return unused;
}

static void test_threads(void **state)
{
    pthread_t thread;

    assert_true(spw_callsite_tag_set("mine"));
    assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect("mine");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_hashes),
        cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
