#include "system/backoff.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <cmocka.h>

static void test_no_time_means_no_pause(void **state)
{
    struct spw_backoff backoff = {.limit_ns = 0};

    assert_false(spw_backoff_pause(&backoff));
    assert_int_equal(backoff.pause_ns, 0);
    (void)state;
}

static void test_pauses_double_up_to_a_bound(void **state)
{
    struct spw_backoff backoff = {.limit_ns = UINT64_MAX};
    uint64_t expected = SPW_BACKOFF_FIRST_NS;

    for (int i = 0; i < 12; i++) {
        assert_true(spw_backoff_pause(&backoff));
        assert_int_equal(backoff.pause_ns, expected);
        expected = expected < SPW_BACKOFF_SLEEP_NS ? expected * 2 : expected;
    }
    (void)state;
}

static void test_the_limit_ends_the_wait(void **state)
{
    struct spw_backoff backoff = {.limit_ns = 1000000};
    uint64_t begin = spw_clock_ns();

    while (spw_backoff_pause(&backoff)) {
    }
    assert_true(spw_clock_ns() - begin >= 1000000);
    (void)state;
}

/* Pauses until the wait is `most_ns` long. Returns how often the thread gave up the processor;
 * *ret_pauses is the number of pauses. */
static long pause_for(uint64_t most_ns, int *ret_pauses)
{
    struct spw_backoff backoff = {.limit_ns = UINT64_MAX};
    uint64_t waited = 0;
    struct rusage before, after;

    assert_int_equal(getrusage(RUSAGE_THREAD, &before), 0);
    for (*ret_pauses = 0; waited < most_ns; waited += backoff.pause_ns) {
        assert_true(spw_backoff_pause(&backoff));
        ++*ret_pauses;
    }
    assert_int_equal(getrusage(RUSAGE_THREAD, &after), 0);
    return after.ru_nvcsw - before.ru_nvcsw;
}

static void test_a_short_wait_does_not_sleep(void **state)
{
    int pauses;

    assert_int_equal(pause_for(150000, &pauses), 0);
    assert_true(pauses > 4);
    (void)state;
}

static void test_a_long_wait_sleeps(void **state)
{
    int spinning, pauses;

    (void)pause_for(150000, &spinning);
    assert_true(pause_for(20000000, &pauses) >= pauses - spinning);
    assert_true(pauses - spinning > 50);
    (void)state;
}

static void keep_the_processor(int signal)
{
    uint64_t begin = spw_clock_ns();

    while (spw_clock_ns() - begin < 40000000) {
    }
    (void)signal;
}

/* A thread that seldom has the processor still asks as often as the limit allows. */
static void test_time_without_the_processor_does_not_count(void **state)
{
    struct spw_backoff backoff = {.limit_ns = 10000000};
    const struct itimerval soon = {.it_value.tv_usec = 1000};
    int asked = 0;

    signal(SIGALRM, keep_the_processor);
    do {
        setitimer(ITIMER_REAL, &soon, NULL);
        asked++;
    } while (spw_backoff_pause(&backoff));
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    assert_true(asked >= 10);
    (void)state;
}

/* A thread that is cancelled goes on behind the pause. (An end by cancellation confuses
 * AddressSanitizer.) */
static void *pause_cancelled(void *passed)
{
    struct spw_backoff backoff = {.limit_ns = 10000000, .pause_ns = SPW_BACKOFF_SLEEP_NS};

    (void)pthread_cancel(pthread_self());
    (void)spw_backoff_pause(&backoff);
    *(bool *)passed = true;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return NULL;
}

static void test_cancelled(void **state)
{
    bool passed = false;
    pthread_t thread;
    void *result = &passed;

    assert_int_equal(pthread_create(&thread, NULL, pause_cancelled, &passed), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_true(passed);
    assert_null(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_time_means_no_pause),
        cmocka_unit_test(test_pauses_double_up_to_a_bound),
        cmocka_unit_test(test_a_short_wait_does_not_sleep),
        cmocka_unit_test(test_a_long_wait_sleeps),
        cmocka_unit_test(test_the_limit_ends_the_wait),
        cmocka_unit_test(test_time_without_the_processor_does_not_count),
        cmocka_unit_test(test_cancelled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
