/* Interned texts and sites: bounded, exact, and never two for one. */
#include "callsite/strings.h"
#include "callsite/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_texts_are_kept_once(void **state)
{
    struct spw_strings strings;
    char text[32];
    uint32_t numbers[200];

    assert_true(spw_callsite_strings_init(&strings, 1 << 16, 512));
    assert_int_equal(spw_callsite_strings_intern(&strings, "", 0), 0);
    assert_string_equal(spw_callsite_strings_text(&strings, 0), "");
    for (int i = 0; i < 200; i++) {
        int length = snprintf(text, sizeof(text), "name %d", i);

        numbers[i] = spw_callsite_strings_intern(&strings, text, (size_t)length);
        assert_int_not_equal(numbers[i], 0);
        assert_true(i == 0 || numbers[i] > numbers[i - 1]);
    }
    for (int i = 0; i < 200; i++) {
        int length = snprintf(text, sizeof(text), "name %d", i);

        assert_int_equal(spw_callsite_strings_intern(&strings, text, (size_t)length), numbers[i]);
        assert_string_equal(spw_callsite_strings_text(&strings, numbers[i]), text);
    }
    /* One that is the beginning of another is not it; bytes of zero are bytes. */
    assert_int_not_equal(spw_callsite_strings_intern(&strings, "name 1", 5), numbers[1]);
    assert_int_not_equal(spw_callsite_strings_intern(&strings, "a\0b", 3),
                         spw_callsite_strings_intern(&strings, "a\0c", 3));
    spw_callsite_strings_fini(&strings);
}

static void test_texts_are_bounded(void **state)
{
    struct spw_strings strings;
    char text[32];
    int kept = 0;

    assert_true(spw_callsite_strings_init(&strings, 4096, 512));
    for (int i = 0; i < 1000; i++) {
        int length = snprintf(text, sizeof(text), "a name %d", i);

        kept += spw_callsite_strings_intern(&strings, text, (size_t)length) != 0;
    }
    assert_in_range(kept, 50, 4096 / 12);
    assert_int_not_equal(spw_callsite_strings_intern(&strings, "a name 0", 8), 0);
    assert_int_equal(spw_callsite_strings_intern(&strings, text, 5000), 0);
    spw_callsite_strings_fini(&strings);
}

static struct spw_stack stack_of(int native, int python)
{
    struct spw_stack stack = {.api = "cudaMalloc", .thread = 4};

    stack.native_count = (uint16_t)native;
    stack.python_count = (uint16_t)python;
    for (int i = 0; i < native; i++) {
        stack.native[i] = 0x7f0000001000u + (uint64_t)i * 64;
    }
    for (int i = 0; i < python; i++) {
        stack.python[i] = (struct spw_callsite_line){8, 12, (uint32_t)i + 1};
    }
    return stack;
}

static void test_the_whole_stack_is_the_site(void **state)
{
    struct spw_stack stack = stack_of(36, 25);
    struct spw_callsite_table sites;
    const struct spw_callsite *site;
    uint32_t first;

    assert_true(spw_callsite_table_init(&sites, 1024, 1 << 20));
    assert_int_equal(spw_callsite_table_find(&sites, &stack), 0);
    stack.modules = 16;
    first = spw_callsite_table_intern(&sites, &stack);
    assert_int_equal(first, 1);
    assert_int_equal(spw_callsite_table_find(&sites, &stack), first);
    stack.modules = 20; /* no part of the stack */
    assert_int_equal(spw_callsite_table_intern(&sites, &stack), first);
    site = spw_callsite_table_get(&sites, first);
    assert_int_equal(site->modules, 16);
    assert_int_equal(site->tag, 0);
    assert_memory_equal(site->native, stack.native, 36 * sizeof(stack.native[0]));
    assert_memory_equal(spw_callsite_lines(site), stack.python, 25 * sizeof(stack.python[0]));

    stack.tag = 24;
    assert_int_equal(spw_callsite_table_intern(&sites, &stack), 2);
    assert_int_equal(spw_callsite_table_get(&sites, 2)->tag, 24);
    stack.tag = 0;
    assert_int_equal(spw_callsite_table_intern(&sites, &stack), first);

    for (int i = 0; i < 36; i++) {
        stack.native[i]++;
        assert_int_not_equal(spw_callsite_table_intern(&sites, &stack), first);
        stack.native[i]--;
    }
    for (int i = 0; i < 25; i++) {
        struct spw_callsite_line line = stack.python[i];

        stack.python[i].line += 100;
        assert_int_not_equal(spw_callsite_table_intern(&sites, &stack), first);
        stack.python[i] = line;
        stack.python[i].function++;
        assert_int_not_equal(spw_callsite_table_intern(&sites, &stack), first);
        stack.python[i] = line;
        stack.python[i].file++;
        assert_int_not_equal(spw_callsite_table_intern(&sites, &stack), first);
        stack.python[i] = line;
    }
    stack.thread++;
    assert_int_not_equal(spw_callsite_table_intern(&sites, &stack), first);
    stack.thread--;
    stack.api = "cuMemAlloc";
    assert_int_not_equal(spw_callsite_table_intern(&sites, &stack), first);
    stack.api = site->api;
    stack.native_count--;
    assert_int_not_equal(spw_callsite_table_intern(&sites, &stack), first);
    stack.native_count++;
    assert_int_equal(spw_callsite_table_intern(&sites, &stack), first);
    assert_int_equal(spw_callsite_table_count(&sites), 1 + 1 + 36 + 3 * 25 + 3);
    spw_callsite_table_fini(&sites);
}

static void test_sites_are_bounded(void **state)
{
    struct spw_stack stack = stack_of(8, 0);
    struct spw_callsite_table sites;

    assert_true(spw_callsite_table_init(&sites, 64, 1 << 20));
    for (uint64_t i = 0; i < 200; i++) {
        stack.native[7] = i;
        assert_int_equal(spw_callsite_table_intern(&sites, &stack), i < 64 ? i + 1 : 0);
    }
    assert_int_equal(sites.refused, 136);
    stack.native[7] = 63;
    assert_int_equal(spw_callsite_table_intern(&sites, &stack), 64);
    assert_null(spw_callsite_table_get(&sites, 0));
    assert_null(spw_callsite_table_get(&sites, 65));
    spw_callsite_table_fini(&sites);

    assert_true(spw_callsite_table_init(&sites, 64, 1024));
    stack.native[7] = 0;
    assert_int_equal(spw_callsite_table_intern(&sites, &stack), 1);
    stack = stack_of(64, 64);
    assert_int_equal(spw_callsite_table_intern(&sites, &stack), 0); /* no room for so large a one */
    spw_callsite_table_fini(&sites);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_are_kept_once),
        cmocka_unit_test(test_texts_are_bounded),
        cmocka_unit_test(test_the_whole_stack_is_the_site),
        cmocka_unit_test(test_sites_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
