/* The record of known content, beside a byte for each byte. */
#include "sim/driver/memory/known.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES = 200, STEPS = 20000 };

struct pair {
    struct sim_known known;
    bool model[BYTES];
};

static uint64_t end_of(const struct pair *pair, uint64_t at)
{
    while (at < BYTES && pair->model[at]) {
        at++;
    }
    return at;
}

static void check(const struct pair *pair)
{
    size_t stretches = 0;

    for (uint64_t at = 0; at < BYTES; at++) {
        assert_int_equal(sim_known_end(&pair->known, at), end_of(pair, at));
        stretches += pair->model[at] && (at == 0 || !pair->model[at - 1]);
    }
    assert_int_equal(pair->known.ranges.count, stretches);
}

static void copy(struct pair *to, uint64_t to_at, const struct pair *from, uint64_t from_at,
                 uint64_t size)
{
    sim_known_copy(&to->known, to_at, &from->known, from_at, size);
    memcpy(to->model + to_at, from->model + from_at, size);
}

static void test_random(void **state)
{
    unsigned int seed = 20261124;
    struct pair pairs[2];

    memset(pairs, 0, sizeof(pairs));
    print_message("seed %u\n", seed);
    for (int step = 0; step < STEPS; step++) {
        uint64_t size = (uint64_t)rand_r(&seed) % 40;
        uint64_t at = (uint64_t)rand_r(&seed) % (BYTES - size);
        uint64_t from = (uint64_t)rand_r(&seed) % (BYTES - size);
        struct pair *pair = &pairs[rand_r(&seed) % 2];
        bool value = rand_r(&seed) % 2 == 0;

        if (rand_r(&seed) % 4 == 0) {
            copy(pair, at, &pairs[pair == pairs], from, size);
        } else {
            sim_known_set(&pair->known, at, size, value);
            memset(pair->model + at, value, size);
        }
        check(pair);
    }
    sim_known_forget(&pairs[0].known);
    sim_known_forget(&pairs[1].known);
    assert_int_equal(pairs[0].known.ranges.count, 0);
}

static void test_within_one(void **state)
{
    struct sim_known known = {.ranges = {.count = 0}};

    sim_known_set(&known, 10, 10, true);
    sim_known_copy(&known, 30, &known, 10, 10);
    assert_true(sim_known_all(&known, 30, 10));
    sim_known_copy(&known, 30, &known, 5, 10);
    assert_false(sim_known_all(&known, 35, 1));
    assert_true(sim_known_all(&known, 50, 0));
    sim_known_forget(&known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_within_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
