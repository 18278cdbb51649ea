/* Measuring steps: when a figure is given, and that it is scaled to one step. */
#include "migrate/move/step_meter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "system/clock.h"

enum { PERIOD = 100 };

static struct spw_counters counters;
static struct spw_step_meter meter;
static unsigned long long now;

static unsigned long long simulated(void)
{
    return now;
}

static int set_up(void **state)
{
    atomic_store(&spw_clock_simulated, simulated);
    counters = (struct spw_counters){0};
    meter = (struct spw_step_meter){0};
    now = 1000000;
    (void)state;
    return 0;
}

static int tear_down(void **state)
{
    atomic_store(&spw_clock_simulated, NULL);
    (void)state;
    return 0;
}

/* Time passes and memory moves with each event. */
static void look(uint64_t events, uint64_t period)
{
    now = 1000000 + 1000 * events;
    spw_counter_set(&counters.placed_bytes, 2 * events); /* did not move */
    spw_counter_set(&counters.spilled_bytes, 70 + 9 * events);
    spw_counter_set(&counters.promoted_bytes, 50 + 5 * events);
    spw_counter_set(&counters.closed_ns, 30 + 3 * events);
    spw_migrate_step_meter_look(&meter, &counters, events, period);
}

static void test_a_step(void **state)
{
    look(40, PERIOD);
    look(40 + PERIOD - 1, PERIOD);
    assert_int_equal(spw_counter_get(&counters.step_ns), 0);
    look(40 + PERIOD, PERIOD);
    assert_int_equal(spw_counter_get(&counters.step_ns), 1000 * PERIOD);
    assert_int_equal(spw_counter_get(&counters.step_out_bytes), 7 * PERIOD);
    assert_int_equal(spw_counter_get(&counters.step_in_bytes), 5 * PERIOD);
    assert_int_equal(spw_counter_get(&counters.step_held_ns), 3 * PERIOD);
    (void)state;
}

/* A look that comes late covers more than a step. */
static void test_scaled(void **state)
{
    look(0, PERIOD);
    look(5 * PERIOD / 2, PERIOD);
    assert_int_equal(spw_counter_get(&counters.step_ns), 1000 * PERIOD);
    assert_int_equal(spw_counter_get(&counters.step_out_bytes), 7 * PERIOD);
    (void)state;
}

/* A counter that seems to fall, as another thread adds to it at the same time, counts as 0. */
static void test_counters_that_fall(void **state)
{
    look(0, PERIOD);
    meter.out_bytes = 1 << 20;
    look(PERIOD, PERIOD);
    assert_int_equal(spw_counter_get(&counters.step_out_bytes), 0);
    assert_int_equal(spw_counter_get(&counters.step_in_bytes), 5 * PERIOD);
    (void)state;
}

/* Without a period the last figures stay, and the next step begins when there is one again. */
static void test_no_period(void **state)
{
    look(0, 0);
    look(PERIOD, 0);
    assert_int_equal(spw_counter_get(&counters.step_ns), 0);
    look(2 * PERIOD, PERIOD);
    look(3 * PERIOD, PERIOD);
    spw_counter_set(&counters.step_ns, 1);
    look(4 * PERIOD, 0);
    look(5 * PERIOD, PERIOD);
    assert_int_equal(spw_counter_get(&counters.step_ns), 1);
    look(6 * PERIOD, PERIOD);
    assert_int_equal(spw_counter_get(&counters.step_ns), 1000 * PERIOD);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_step, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_scaled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_counters_that_fall, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_period, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
