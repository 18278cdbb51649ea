/* The time of a recording: the processor's clock, compared with the system's, also when the machine
 * is suspended. Both clocks are the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/timeline.h"

enum { PER_SECOND = 10000000, TICKS_PER_UNIT = 300, STEP = PER_SECOND / 1000 };

static struct spw_record_timeline timeline;
static uint64_t ticks, units; /* what the clocks show */
static uint64_t compared;

static void pass(uint64_t time)
{
    units += time;
    ticks += time * TICKS_PER_UNIT;
}

/* The time of an event now. */
static uint64_t event(void)
{
    uint64_t time;

    if (!spw_record_timeline_now(&timeline, ticks, &time)) {
        compared++;
        time = units;
        spw_record_timeline_compare(&timeline, ticks, time);
    }
    return time;
}

static void begin(void)
{
    ticks = UINT64_C(1) << 40;
    units = 0;
    spw_record_timeline_begin(&timeline, ticks, 0, PER_SECOND);
    pass(STEP);
    (void)event();
    compared = 0;
}

static void expect_exact(void)
{
    uint64_t time = event();

    assert_true(time <= units && units - time <= 2);
}

static void test_exact(void **state)
{
    begin();
    for (int i = 0; i < 10000; i++) {
        pass(STEP);
        expect_exact();
    }
    assert_in_range(compared, 90, 101); /* in ten seconds */
}

/* Events are rare. */
static void test_pauses(void **state)
{
    begin();
    for (int i = 1; i < 30; i++) {
        pass((uint64_t)i * PER_SECOND);
        expect_exact();
    }
}

/* The processor's clock goes on while the system's stands still. Events go on where they were, and
 * are exact again at once. */
static void test_suspended(void **state)
{
    begin();
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 500; k++) {
            pass(STEP);
            expect_exact();
        }
        ticks += UINT64_C(3600) * PER_SECOND * TICKS_PER_UNIT;
        expect_exact();
    }
}

/* The processor's clock begins anew. */
static void test_reset(void **state)
{
    begin();
    for (int k = 0; k < 2000; k++) {
        pass(STEP);
        if (k % 500 == 499) {
            ticks = 1000;
        }
        expect_exact();
    }
}

/* A sleep that is too short to be noticed moves no event by more than a tenth of a second, and not
 * for longer than that. */
static void test_short_sleep(void **state)
{
    uint64_t time, most = 0;

    begin();
    for (int k = 0; k < 1000; k++) {
        pass(STEP);
        ticks += k == 500 ? UINT64_C(50) * STEP * TICKS_PER_UNIT : 0;
        time = event();
        most = time - units < PER_SECOND && time - units > most ? time - units : most;
    }
    assert_true(most <= PER_SECOND / 10);
    expect_exact();
}

/* A clock whose rate is not known yet, or that does not go, is not used. */
static void test_no_rate(void **state)
{
    uint64_t time = 4711;

    ticks = 5;
    spw_record_timeline_begin(&timeline, ticks, 0, PER_SECOND);
    assert_false(spw_record_timeline_now(&timeline, ticks, &time));
    spw_record_timeline_compare(&timeline, ticks, PER_SECOND);
    assert_false(spw_record_timeline_now(&timeline, ticks, &time));
    assert_int_equal(time, 4711);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),       cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_suspended),   cmocka_unit_test(test_reset),
        cmocka_unit_test(test_short_sleep), cmocka_unit_test(test_no_rate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
