#include "program/spans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "malloc_faults.h"

static void test_empty(void **state)
{
    struct spw_spans spans = {0};
    struct spw_span span;

    assert_false(spw_program_spans_have(&spans, 0));
    assert_false(spw_program_spans_take(&spans, 7, &span));
    spw_program_spans_clear(&spans);
}

static void test_edges(void **state)
{
    struct spw_spans spans = {0};
    struct spw_span span;

    assert_true(spw_program_spans_add(&spans, 100, 10));
    assert_true(spw_program_spans_add(&spans, 110, 10));
    assert_true(spw_program_spans_add(&spans, 90, 5));
    assert_int_equal(spans.count, 3);
    assert_false(spw_program_spans_have(&spans, 89));
    assert_true(spw_program_spans_have(&spans, 90));
    assert_true(spw_program_spans_have(&spans, 94));
    assert_false(spw_program_spans_have(&spans, 95));
    assert_true(spw_program_spans_have(&spans, 119));
    assert_false(spw_program_spans_have(&spans, 120));
    assert_true(spw_program_spans_take(&spans, 109, &span));
    assert_int_equal(span.begin, 100);
    assert_int_equal(span.end, 110);
    assert_false(spw_program_spans_have(&spans, 105));
    assert_true(spw_program_spans_have(&spans, 110));
    spw_program_spans_clear(&spans);
}

/* A new range replaces the ranges that it overlaps. */
static void test_overlap(void **state)
{
    struct spw_spans spans = {0};

    for (uint64_t i = 0; i < 10; i++) {
        assert_true(spw_program_spans_add(&spans, 100 * i, 50));
    }
    assert_true(spw_program_spans_add(&spans, 249, 152));
    assert_int_equal(spans.count, 8);
    assert_false(spw_program_spans_have(&spans, 200));
    assert_true(spw_program_spans_have(&spans, 300));
    assert_true(spw_program_spans_have(&spans, 400));
    assert_false(spw_program_spans_have(&spans, 401));
    spw_program_spans_clear(&spans);
}

/* Where a walk over the addresses enters or leaves the ranges. */
static void test_change(void **state)
{
    struct spw_spans spans = {0};

    assert_true(spw_program_spans_change(&spans, 5) == UINT64_MAX);
    assert_true(spw_program_spans_add(&spans, 100, 10));
    assert_true(spw_program_spans_add(&spans, 110, 10));
    assert_true(spw_program_spans_add(&spans, 130, 5));
    assert_int_equal(spw_program_spans_change(&spans, 7), 100);
    assert_int_equal(spw_program_spans_change(&spans, 100), 120);
    assert_int_equal(spw_program_spans_change(&spans, 119), 120);
    assert_int_equal(spw_program_spans_change(&spans, 120), 130);
    assert_int_equal(spw_program_spans_change(&spans, 134), 135);
    assert_true(spw_program_spans_change(&spans, 135) == UINT64_MAX);
    spw_program_spans_clear(&spans);
}

/* Random ranges, compared with a table that has an entry for each byte. */
static void test_random(void **state)
{
    enum { BYTES = 4096, ROUNDS = 20000 };
    static uint16_t owners[BYTES]; /* index + 1 of the first byte of the range; 0: none */
    struct spw_spans spans = {0};
    struct spw_span span;
    unsigned seed = 1;

    for (int round = 0; round < ROUNDS; round++) {
        uint64_t begin = (uint64_t)rand_r(&seed) % (BYTES - 64);
        uint64_t bytes = 1 + (uint64_t)rand_r(&seed) % 63;

        if (rand_r(&seed) % 3 != 0) {
            assert_true(spw_program_spans_add(&spans, begin, bytes));
            for (uint64_t at = begin; at < begin + bytes; at++) {
                for (int i = 0; owners[at] != 0 && owners[at] != begin + 1 && i < BYTES; i++) {
                    owners[i] = owners[i] == owners[at] && i != (int)at ? 0 : owners[i];
                }
                owners[at] = (uint16_t)(begin + 1);
            }
            for (uint64_t at = begin + bytes; at < BYTES; at++) {
                owners[at] = owners[at] == begin + 1 ? 0 : owners[at];
            }
        } else if (spw_program_spans_take(&spans, begin, &span)) {
            for (uint64_t at = span.begin; at < span.end; at++) {
                assert_int_equal(owners[at], span.begin + 1);
                owners[at] = 0;
            }
        }
        begin = (uint64_t)rand_r(&seed) % BYTES;
        assert_int_equal(spw_program_spans_have(&spans, begin), owners[begin] != 0);
    }
    spw_program_spans_clear(&spans);
}

/* What has no room is refused, and the others stay. */
static void test_no_memory(void **state)
{
    struct spw_spans spans = {0};
    size_t count = 0;

    calls_until_failure = 1;
    assert_false(spw_program_spans_add(&spans, 0, 10));
    assert_false(spw_program_spans_have(&spans, 0));
    assert_true(spw_program_spans_add(&spans, 20 * count++, 10));
    while (spans.count < spans.capacity) {
        assert_true(spw_program_spans_add(&spans, 20 * count++, 10));
    }
    calls_until_failure = 1;
    assert_false(spw_program_spans_add(&spans, 20 * count, 10));
    assert_int_equal(spans.count, count);
    assert_true(spw_program_spans_have(&spans, 20 * count - 20));
    assert_false(spw_program_spans_have(&spans, 20 * count));
    assert_true(spw_program_spans_add(&spans, 20 * count, 10));
    spw_program_spans_clear(&spans);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),   cmocka_unit_test(test_edges),
        cmocka_unit_test(test_overlap), cmocka_unit_test(test_change),
        cmocka_unit_test(test_random),  cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
