#include "sim/driver/exec/period.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

/* A made-up program: launches of 100 ns each. */
struct program {
    struct sim_period *period;
    struct sim_record_step sums;
};

static int begin(void **state)
{
    struct program *program = calloc(1, sizeof(*program));

    program->period = calloc(1, sizeof(*program->period));
    *state = program;
    return 0;
}

static int end(void **state)
{
    struct program *program = *state;

    free(program->period);
    free(program);
    return 0;
}

static void launch(struct program *program, uint64_t key)
{
    program->sums.ns += 100;
    program->sums.busy_ns += 90;
    program->sums.sure_ns += 80;
    sim_period_add(program->period, key, &program->sums);
}

/* A step of a network of equal layers: 3 launches each, 2 of the loss, then the optimizer. */
static void train(struct program *program, int layers, int updates)
{
    for (int i = 0; i < layers; i++) {
        launch(program, 1);
        launch(program, 2);
        launch(program, 3);
    }
    launch(program, 10);
    launch(program, 11);
    for (int i = 0; i < updates; i++) {
        launch(program, 20 + (uint64_t)i);
    }
}

static void test_no_period(void **state)
{
    struct program *program = *state;

    for (uint64_t i = 1; i < 10000; i++) {
        launch(program, i);
    }
    assert_int_equal(program->period->step.launches, 0);
}

static void test_steps(void **state)
{
    struct program *program = *state;

    for (int i = 0; i < 4; i++) {
        train(program, 12, 5);
    }
    assert_int_equal(program->period->step.launches, 12 * 3 + 2 + 5);
    assert_int_equal(program->period->step.ns, (12 * 3 + 2 + 5) * 100);
    assert_int_equal(program->period->step.busy_ns, (12 * 3 + 2 + 5) * 90);
    assert_int_equal(program->period->step.sure_ns, (12 * 3 + 2 + 5) * 80);
}

/* The first step also makes the optimizer's state. */
static void test_first_step_differs(void **state)
{
    struct program *program = *state;

    for (int i = 0; i < 500; i++) {
        launch(program, 30); /* the numbers of the model */
    }
    train(program, 12, 5);
    for (int i = 0; i < 77; i++) {
        launch(program, 31);
    }
    for (int i = 0; i < 4; i++) {
        train(program, 12, 5);
    }
    assert_int_equal(program->period->step.launches, 43);
}

/* A step whose gradients are of four batches ends with its optimizer. */
static void test_accumulation(void **state)
{
    struct program *program = *state;

    for (int i = 0; i < 16; i++) {
        train(program, 12, i % 4 == 3 ? 5 : 0);
    }
    assert_int_equal(program->period->step.launches, 4 * 38 + 5);
}

/* Work of every third step only does not make a step of three. */
static void test_reports(void **state)
{
    struct program *program = *state;

    for (int i = 0; i < 15; i++) {
        train(program, 12, 5);
        launch(program, i % 3 == 0 ? 40 : 41);
    }
    assert_int_equal(program->period->step.launches, 44);
}

/* Another phase of the program, with longer or shorter steps, replaces the first one. */
static void test_phases(void **state)
{
    struct program *program = *state;

    for (int i = 0; i < 20; i++) {
        train(program, 12, 5);
    }
    for (int i = 0; i < 60; i++) {
        train(program, 24, 7);
    }
    assert_int_equal(program->period->step.launches, 24 * 3 + 2 + 7);
    for (int i = 0; i < 60; i++) {
        train(program, 4, 1);
    }
    assert_int_equal(program->period->step.launches, 4 * 3 + 2 + 1);
}

/* More keys than places. */
static void test_many_keys(void **state)
{
    struct program *program = *state;

    for (int step = 0; step < 6; step++) {
        for (uint64_t i = 1; i <= 3 * SIM_PERIOD_KEYS; i++) {
            launch(program, i * 7919);
        }
    }
    assert_true(program->period->step.launches == 0 ||
                program->period->step.launches == 3 * SIM_PERIOD_KEYS);
}

#define PERIOD_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PERIOD_TEST(test_no_period),
        PERIOD_TEST(test_steps),
        PERIOD_TEST(test_first_step_differs),
        PERIOD_TEST(test_accumulation),
        PERIOD_TEST(test_reports),
        PERIOD_TEST(test_phases),
        PERIOD_TEST(test_many_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
