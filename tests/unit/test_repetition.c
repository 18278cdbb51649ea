/* Repetition: periods of sequences, with and without enough evidence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pool/plan/repetition.h"

enum { MOST = 2000 };

static bool any(const void *cookie, size_t period)
{
    return true;
}

/* Refuses the periods below the cookie. */
static bool at_least(const void *cookie, size_t period)
{
    return period >= *(const size_t *)cookie;
}

/* A sequence that repeats `period` symbols, all different, from its `skip`th symbol on. */
static void fill(uint64_t *symbols, size_t count, size_t period, size_t skip)
{
    for (size_t i = 0; i < count; i++) {
        symbols[i] = i < skip ? 1000000 + i : (i - skip) % period;
    }
}

static void test_period(void **state)
{
    uint64_t symbols[MOST];

    for (size_t period = 8; period < 600; period = period * 3 + 1) {
        fill(symbols, MOST, period, 10);
        assert_int_equal(spw_pool_repetition_find(symbols, MOST, 1, any, NULL), period);
        assert_int_equal(spw_pool_repetition_find(symbols, MOST, period + 1, any, NULL),
                         2 * period);
    }
}

/* Of a long period an eighth is enough, and 64 symbols of a shorter one. */
static void test_evidence(void **state)
{
    uint64_t symbols[MOST];

    fill(symbols, MOST, 800, 0);
    assert_int_equal(spw_pool_repetition_find(symbols, 800 + 99, 1, any, NULL), 0);
    assert_int_equal(spw_pool_repetition_find(symbols, 800 + 100, 1, any, NULL), 800);
    fill(symbols, MOST, 100, 0);
    assert_int_equal(spw_pool_repetition_find(symbols, 100 + 63, 1, any, NULL), 0);
    assert_int_equal(spw_pool_repetition_find(symbols, 100 + 64, 1, any, NULL), 100);
    fill(symbols, MOST, 9, 0);
    assert_int_equal(spw_pool_repetition_find(symbols, 17, 1, any, NULL), 0);
    assert_int_equal(spw_pool_repetition_find(symbols, 18, 1, any, NULL), 9);
}

/* Layers that repeat inside a step: the caller asks for more than a layer. */
static void test_inner_period(void **state)
{
    size_t least = 50;
    uint64_t symbols[MOST];

    for (size_t i = 0; i < MOST; i++) {
        symbols[i] = i % 250 < 200 ? i % 10 : 100 + i % 250;
    }
    assert_int_equal(spw_pool_repetition_find(symbols, 1000 + 150, 1, any, NULL), 10);
    assert_int_equal(spw_pool_repetition_find(symbols, 1000 + 240, 1, any, NULL), 250);
    assert_int_equal(spw_pool_repetition_find(symbols, 1000 + 240, 1, at_least, &least), 250);
}

static void test_none(void **state)
{
    uint64_t symbols[MOST];

    fill(symbols, MOST, MOST, 0);
    assert_int_equal(spw_pool_repetition_find(symbols, MOST, 1, any, NULL), 0);
    assert_int_equal(spw_pool_repetition_find(symbols, 1, 1, any, NULL), 0);
    assert_int_equal(spw_pool_repetition_find(symbols, 0, 1, any, NULL), 0);
}

/* Only the last symbols count, and each of them. */
static void test_copies(void **state)
{
    uint64_t symbols[MOST];

    fill(symbols, MOST, 50, 1000);
    assert_true(spw_pool_repetition_is_of(symbols, MOST, 1000, 50));
    assert_true(spw_pool_repetition_is_of(symbols, MOST, 1000, 100));
    assert_true(spw_pool_repetition_is_of(symbols, MOST, 1000, 950));
    assert_false(spw_pool_repetition_is_of(symbols, MOST, 1001, 50));
    assert_false(spw_pool_repetition_is_of(symbols, MOST, 1000, 49));
    assert_true(spw_pool_repetition_is_of(symbols, MOST, 50, 50));
    for (size_t i = 1000; i < MOST; i += 333) {
        symbols[i]++;
        assert_false(spw_pool_repetition_is_of(symbols, MOST, 1000, 50));
        symbols[i]--;
    }
}

/* A period of several equal parts is one of them, unless that is too short. */
static void test_parts(void **state)
{
    uint64_t symbols[MOST];

    fill(symbols, MOST, 50, 1000);
    assert_int_equal(spw_pool_repetition_part(symbols, MOST, 600, 8), 50);
    assert_int_equal(spw_pool_repetition_part(symbols, MOST, 600, 51), 100);
    assert_int_equal(spw_pool_repetition_part(symbols, MOST, 600, 301), 600);
    assert_int_equal(spw_pool_repetition_part(symbols, MOST, 50, 8), 50);
    assert_int_equal(spw_pool_repetition_part(symbols, MOST, 625, 8), 625); /* not whole copies */
    symbols[MOST - 500]++;
    assert_int_equal(spw_pool_repetition_part(symbols, MOST, 600, 8), 600);
    assert_int_equal(spw_pool_repetition_part(symbols, MOST, 400, 8), 50);
}

/* A period that is longer than a part: it recurs, or comes from one disturbance. */
static void test_recurring(void **state)
{
    uint64_t symbols[MOST];

    /* Steps of 100, then half a one, then steps again. */
    fill(symbols, MOST, 100, MOST);
    for (size_t after = 20; after < 300; after += 20) {
        for (size_t i = 0; i < after + 50; i++) {
            symbols[500 + i] = symbols[i < 50 ? i + 50 : (i - 50) % 100];
        }
        assert_false(spw_pool_repetition_recurs(symbols, 550 + after, 150, 100));
    }
    /* The half comes back, after two steps each time. */
    for (size_t i = 0; i < 750; i++) {
        symbols[i] = i % 250 < 200 ? i % 250 % 100 : i % 250 - 150;
    }
    assert_true(spw_pool_repetition_recurs(symbols, 750, 250, 100));
    assert_true(spw_pool_repetition_recurs(symbols, 500, 250, 100));
    assert_true(spw_pool_repetition_recurs(symbols, 300, 250, 100)); /* nothing is known before */
    assert_false(spw_pool_repetition_recurs(symbols, 750, 249, 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),       cmocka_unit_test(test_parts),
        cmocka_unit_test(test_period),       cmocka_unit_test(test_evidence),
        cmocka_unit_test(test_inner_period), cmocka_unit_test(test_none),
        cmocka_unit_test(test_recurring),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
