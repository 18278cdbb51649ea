/* Line tables of CPython in their three forms: tables that compilers made, and any bytes at all. */
#include "callsite/cpython/line.h"
#include "callsite/modules.h"
#include "callsite/symbols.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Which line stands at which byte of the code. */
struct expected {
    int code;
    uint32_t line;
};

static void check(enum spw_callsite_line_form form, const char *table, size_t length, int first,
                  const struct expected *expected, size_t count)
{
    uint8_t *copy = malloc(length); /* of the very size, so that a read beyond it is seen */

    memcpy(copy, table, length);
    for (size_t i = 0; i < count; i++) {
        size_t used = 0;

        assert_int_equal(spw_callsite_line_find(form, copy, length, first, expected[i].code, &used),
                         expected[i].line);
        assert_in_range(used, 0, length);
    }
    free(copy);
}

#define CHECK(form, table, first, ...)                                                             \
    do {                                                                                           \
        static const struct expected expected[] = {__VA_ARGS__};                                   \
        check(form, table, sizeof(table) - 1, first, expected,                                     \
              sizeof(expected) / sizeof(expected[0]));                                             \
    } while (0)

/* The function
 *
 *     10 def f(x):
 *     11     if x:
 *     12         y = g(
 *     13             x)
 *     14         return y
 *     15     return (
 *     16         h(x))
 *
 * as the interpreters compile it; the lines are what their own dis module says. */
static void test_tables_of_compilers(void **state)
{
    /* 3.8: x, two bytes an instruction */
    CHECK(SPW_LINE_LNOTAB, "\x00\x01\x04\x01\x02\x01\x02\xff\x04\x02\x04\x02\x02\xff", 10, {0, 11},
          {2, 11}, {4, 12}, {6, 13}, {8, 12}, {10, 12}, {12, 14}, {16, 16}, {18, 15}, {200, 15});
    /* 3.10 */
    CHECK(SPW_LINE_LINETABLE, "\x04\x01\x02\x01\x02\x01\x04\xff\x04\x02\x02\x01\x06\x80", 10,
          {0, 11}, {2, 11}, {4, 12}, {6, 13}, {8, 12}, {12, 14}, {16, 15}, {18, 0}, {24, 0});
}

static void test_locations(void **state)
{
    /* no line; a long form one line on; a short form on the same line; one of two lines on; one
     * back without columns */
    CHECK(SPW_LINE_LOCATIONS, "\xf8\xf1\x02\x00\x05\x09\x80\x10\xe1\x05\x08\xe8\x03", 10, {0, 0},
          {2, 11}, {4, 11}, {6, 11}, {8, 13}, {10, 13}, {12, 12}, {14, 0});
    /* numbers of several parts: 1000 lines on, and 1000 back */
    CHECK(SPW_LINE_LOCATIONS, "\xe8\x50\x1f\xe8\x51\x1f", 10, {0, 1010}, {2, 10});
}

static void test_any_bytes(void **state)
{
    enum { MOST = 64, ROUNDS = 200000 };

    srandom(3);
    for (int round = 0; round < ROUNDS; round++) {
        size_t length = (size_t)random() % MOST, used;
        uint8_t *table = malloc(length + (length == 0));

        for (size_t i = 0; i < length; i++) {
            table[i] = (uint8_t)random();
        }
        for (int form = SPW_LINE_LNOTAB; form <= SPW_LINE_LOCATIONS; form++) {
            uint32_t line = spw_callsite_line_find(form, table, length, (int)random(),
                                                   (int)random() % 256, &used);

            assert_in_range(line, 0, INT32_MAX);
            assert_in_range(used, 0, length);
        }
        free(table);
    }
}

/* A line depends only on the bytes that are reported as used. */
static void test_used_bytes_decide(void **state)
{
    static const char table[] = "\xf8\xf1\x02\x00\x05\x09\x80\x10\xe1\x05\x08\xe8\x03";

    for (int code = 0; code < 14; code += 2) {
        uint8_t copy[sizeof(table)];
        size_t used, again;
        uint32_t line;

        memcpy(copy, table, sizeof(table));
        line = spw_callsite_line_find(SPW_LINE_LOCATIONS, copy, sizeof(table) - 1, 10, code, &used);
        memset(copy + used, 0xe8, sizeof(table) - used);
        assert_int_equal(
            spw_callsite_line_find(SPW_LINE_LOCATIONS, copy, sizeof(table) - 1, 10, code, &again),
            line);
        assert_int_equal(again, used);
    }
}

static void test_nodes(void **state)
{
    static const struct {
        const char *mangled, *node;
        bool apply;
    } some[] = {
        {"_ZN5torch8autograd9generated14AddmmBackward05applyEOSt6vectorIN2at6TensorESaIS5_EE",
         "AddmmBackward0", true},
        {"_ZN5torch8autograd14AccumulateGrad5applyEOSt6vectorIN2at6TensorESaIS3_EE",
         "AccumulateGrad", true},
        {"_ZNK5torch8autograd13InputMetadata11reduce_gradERN2at6TensorE",
         "InputMetadata::reduce_grad", false},
        {"_ZN5torch8autograd11InputBuffer3addEmON2at6TensorE", "InputBuffer::add", false},
    };
    static const char *const none[] = {
        "_ZN2at4addmmERKNS_6TensorES2_S2_",
        "_ZN5torch8autograd6Engine11thread_mainERKSt10shared_ptrINS0_9GraphTaskEE",
        "_ZN5torch8autograd4NodeclEOSt6vectorIN2at6TensorESaIS4_EE",
        "_ZN5torch8autograd9generated14AddmmBackward05other",
        "_ZN5torch8autograd9generated99AddmmBackward05applyE",
        "_ZN5torch8autograd99999999999999999999999999999999995applyE",
        "_ZN5torch8autograd5applyE",
        "_ZN5torch3jit6tracer5Graph5applyE",
        "_ZN2at8autograd9generated5Graph5applyE",
        "_ZN5torch8autograd",
        "_ZN",
        "apply",
        "",
    };
    char node[32];
    bool apply;

    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
        assert_true(spw_callsite_symbol_node(some[i].mangled, &apply, node, sizeof(node)));
        assert_string_equal(node, some[i].node);
        assert_int_equal(apply, some[i].apply);
    }
    assert_false(spw_callsite_symbol_node(some[1].mangled, &apply, node, 8));
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        if (spw_callsite_symbol_node(none[i], &apply, node, sizeof(node))) {
            assert_string_equal(none[i], "is no node");
        }
    }
}

/* qsort is exported by the C library. */
static void test_names_of_exported_functions(void **state)
{
    struct spw_symbol symbols[] = {
        {.address = (uintptr_t)qsort + 4},
        {.address = 16},
        {.address = (uintptr_t)strtoull + 1},
        {.address = (uintptr_t)qsort + 4},
    };
    size_t count = spw_callsite_symbols_sort(symbols, 4);
    char name[64];

    assert_int_equal(count, 3);
    spw_callsite_modules_note();
    spw_callsite_symbols_name(symbols, count);
    spw_callsite_symbol_text(spw_callsite_symbols_find(symbols, count, (uintptr_t)qsort + 4), name,
                             sizeof(name));
    assert_string_equal(name, "qsort");
    spw_callsite_symbol_text(spw_callsite_symbols_find(symbols, count, 16), name, sizeof(name));
    assert_string_equal(name, "");
    assert_null(spw_callsite_symbols_find(symbols, count, 17));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_of_compilers),
        cmocka_unit_test(test_locations),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_used_bytes_decide),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_names_of_exported_functions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
