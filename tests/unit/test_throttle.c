/* The throttle: when marks are set, what they tell, and when a program that submits too far ahead
 * is held back. */
#include "migrate/move/throttle.h"

#include <string.h>

#include "pool_fixture.h"
#include "system/clock.h"
#include "migrate/move/barrier.h"

enum { PERIOD = 2048, LEAST_LEAD = 16, PAUSE = 64, WAIT_NS = 100000 };

static struct {
    struct pool_fixture pool;
    struct spw_access_log log;
    struct spw_throttle throttle;
    uint64_t a, b;
} f;

static void open_fixture(bool guarded)
{
    memset(&f, 0, sizeof(f));
    spw_migrate_barrier_reset();
    spw_migrate_barrier_arm();
    pool_open_small(&f.pool, 64, 16, 0);
    f.a = pool_alloc(&f.pool, GRANULE, &stream_a);
    f.b = pool_alloc(&f.pool, GRANULE, &stream_a);
    assert_true(spw_migrate_access_log_open(&f.log, f.pool.pool, &f.pool.counters));
    spw_migrate_throttle_init(&f.throttle, f.pool.pool, WAIT_NS, guarded);
}

static void close_fixture(void)
{
    fake_vm_complete(&f.pool.vm);
    (void)spw_migrate_progress_completed(&f.throttle.stream_marks);
    (void)spw_migrate_progress_completed(&f.throttle.device_marks);
    spw_migrate_access_log_close(&f.log);
    pool_close(&f.pool);
}

/* Each of the submissions is an event. */
static void submit(int count)
{
    for (int i = 0; i < count; i++) {
        const uint64_t *address = f.log.predictor.count % 2 == 0 ? &f.a : &f.b;

        spw_migrate_barrier_acquire();
        spw_migrate_access_log_record(&f.log, address, 1, /* kernel */ true);
        spw_migrate_barrier_release();
    }
}

static void submit_unknown(void)
{
    spw_migrate_barrier_acquire();
    spw_migrate_barrier_release();
}

static void pass(uint64_t period, uint64_t lead, bool device_busy)
{
    spw_migrate_throttle_submitter(&f.throttle, &f.log, &stream_b, period, lead, device_busy, NULL,
                                   NULL);
}

static size_t marks_of_streams(void)
{
    return f.throttle.stream_marks.count;
}

static size_t marks_of_the_device(void)
{
    return f.throttle.device_marks.count;
}

/* ---- progress ---- */

static struct spw_access_log_snapshot now(void)
{
    return spw_migrate_access_log_snapshot(&f.log, spw_migrate_barrier_submissions());
}

static void mark(struct spw_progress *marks)
{
    const struct spw_access_log_snapshot snapshot = now();

    spw_migrate_progress_set(marks, NULL, &snapshot);
}

static void test_marks(void **state)
{
    struct spw_progress marks;

    open_fixture(true);
    marks = (struct spw_progress){.pool = f.pool.pool};
    assert_null(spw_migrate_progress_completed(&marks));
    submit(1);
    mark(&marks);
    submit(1);
    assert_null(spw_migrate_progress_completed(&marks));
    fake_vm_complete(&f.pool.vm);
    mark(&marks);
    assert_int_equal(spw_migrate_progress_completed(&marks)->clock, 1);
    assert_false(spw_migrate_progress_has_passed(&marks, UINT64_MAX));
    assert_true(spw_migrate_progress_has_passed(&marks, 0));
    fake_vm_complete(&f.pool.vm);
    assert_int_equal(spw_migrate_progress_completed(&marks)->clock, 2);
    assert_true(spw_migrate_progress_has_passed(&marks, UINT64_MAX));
    close_fixture();
}

/* Marks of a stream do not wait for other streams, above all not for spillway's copies. */
static void test_marks_of_a_stream(void **state)
{
    struct spw_progress all, pace;
    struct spw_access_log_snapshot snapshot;

    open_fixture(true);
    all = pace = (struct spw_progress){.pool = f.pool.pool};
    submit(1);
    snapshot = now();
    spw_migrate_progress_set(&all, NULL, &snapshot);
    spw_migrate_progress_set(&pace, &stream_b, &snapshot);
    fake_vm_complete_stream(&f.pool.vm, stream_b.id);
    assert_null(spw_migrate_progress_completed(&all));
    assert_false(spw_migrate_progress_has_passed(&all, UINT64_MAX));
    assert_non_null(spw_migrate_progress_completed(&pace));
    assert_true(spw_migrate_progress_has_passed(&pace, UINT64_MAX));
    fake_vm_complete(&f.pool.vm);
    assert_non_null(spw_migrate_progress_completed(&all));
    close_fixture();
}

/* No mark is set during a capture or when there are too many; the others stay valid. */
static void test_marks_that_cannot_be_set(void **state)
{
    struct spw_progress marks;

    open_fixture(true);
    marks = (struct spw_progress){.pool = f.pool.pool};
    f.pool.vm.capturing = true;
    mark(&marks);
    assert_int_equal(marks.count, 0);
    f.pool.vm.capturing = false;
    for (int i = 0; i < SPW_MARKS + 10; i++) {
        submit(1);
        mark(&marks);
    }
    assert_int_equal(marks.count, SPW_MARKS);
    fake_vm_complete(&f.pool.vm);
    assert_int_equal(spw_migrate_progress_completed(&marks)->clock, SPW_MARKS);
    assert_int_equal(marks.count, 0);
    close_fixture();
}

/* ---- marks ---- */

/* While nothing is predicted, every call sets a mark, whatever was submitted since. */
static void test_marks_without_a_period(void **state)
{
    open_fixture(true);
    for (size_t i = 1; i <= 3; i++) {
        pass(0, 0, false);
        assert_int_equal(marks_of_streams(), i);
        assert_int_equal(marks_of_the_device(), i);
        assert_int_equal(f.throttle.stream_marks.ring[i - 1].snapshot.submissions,
                         f.throttle.stream_marks.ring[0].snapshot.submissions + i - 1);
        submit_unknown();
    }
    close_fixture();
}

/* Then there are four marks in the lead of a program with a migration in flight. */
static void test_distance_of_marks(void **state)
{
    static const struct {
        uint64_t period;
        int events;
    } cases[] = {{1, 4}, {16 * 32 + 31, 4}, {20 * 32, 5}, {PERIOD, 16}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_fixture(false);
        submit(cases[i].events - 1);
        pass(cases[i].period, PERIOD, false);
        assert_int_equal(marks_of_streams(), 0);
        submit(1);
        pass(cases[i].period, PERIOD, false);
        assert_int_equal(marks_of_streams(), 1);
        submit(cases[i].events - 1);
        pass(cases[i].period, PERIOD, false);
        assert_int_equal(marks_of_streams(), 1);
        submit(1);
        pass(cases[i].period, PERIOD, false);
        assert_int_equal(marks_of_streams(), 2);
        close_fixture();
    }
}

/* Marks of the device are needed with `guarded` only, those of a stream where it is known. */
static void test_kinds_of_marks(void **state)
{
    open_fixture(false);
    pass(0, 0, false);
    assert_int_equal(marks_of_the_device(), 0);
    assert_int_equal(f.pool.vm.fenced_stream, stream_b.id);
    spw_migrate_throttle_submitter(&f.throttle, &f.log, NULL, 0, 0, false, NULL, NULL);
    assert_int_equal(marks_of_streams(), 1);
    close_fixture();
    open_fixture(true);
    spw_migrate_throttle_submitter(&f.throttle, &f.log, NULL, 0, 0, false, NULL, NULL);
    assert_int_equal(marks_of_the_device(), 1);
    assert_int_equal(marks_of_streams(), 0);
    assert_int_equal(f.pool.vm.fenced_stream, SPW_STREAM_ALL);
    close_fixture();
}

/* ---- what the device has completed ---- */

static void test_completed(void **state)
{
    const struct spw_access_log_snapshot *then;

    open_fixture(true);
    submit_unknown();
    submit(3);
    assert_null(spw_migrate_throttle_completed(&f.throttle, &f.log));
    pass(0, 0, false);
    assert_null(spw_migrate_throttle_completed(&f.throttle, &f.log));
    submit(2);
    fake_vm_complete(&f.pool.vm);
    then = spw_migrate_throttle_completed(&f.throttle, &f.log);
    assert_non_null(then);
    assert_int_equal(then->events, 3);
    assert_int_equal(then->complete, 3);
    submit_unknown(); /* it may have touched anything */
    assert_null(spw_migrate_throttle_completed(&f.throttle, &f.log));
    pass(0, 0, false);
    fake_vm_complete(&f.pool.vm);
    assert_non_null(spw_migrate_throttle_completed(&f.throttle, &f.log));
    close_fixture();
}

static void test_nothing_is_known_without_guarding(void **state)
{
    open_fixture(false);
    submit(3);
    pass(0, 0, false);
    f.throttle.device_marks = f.throttle.stream_marks;
    fake_vm_complete(&f.pool.vm);
    assert_null(spw_migrate_throttle_completed(&f.throttle, &f.log));
    f.throttle.stream_marks.count = 0;
    close_fixture();
}

/* ---- the lead ---- */

static void test_lead(void **state)
{
    struct spw_throttle throttle = {.guarded = false};

    assert_int_equal(spw_migrate_throttle_lead(&throttle, PERIOD, false), PERIOD / 8);
    assert_int_equal(spw_migrate_throttle_lead(&throttle, PERIOD, true), PERIOD / 32);
    throttle.guarded = true;
    assert_int_equal(spw_migrate_throttle_lead(&throttle, PERIOD, false), PERIOD / 32);
    assert_int_equal(spw_migrate_throttle_lead(&throttle, PERIOD, true), PERIOD / 32);
    assert_int_equal(spw_migrate_throttle_lead(&throttle, 16 * 32 - 1, true), LEAST_LEAD);
    assert_int_equal(spw_migrate_throttle_lead(&throttle, 17 * 32, true), LEAST_LEAD + 1);
    assert_int_equal(spw_migrate_throttle_lead(&throttle, 0, false), LEAST_LEAD);
}

/* A program that is too far ahead is held back, for a time; then it is left alone for a while. */
static void test_held_back(void **state)
{
    uint64_t begin;

    open_fixture(false);
    submit(16);
    pass(PERIOD, 64, false); /* a mark at 16 */
    submit(64);
    pass(PERIOD, 64, false); /* exactly so far ahead is allowed */
    assert_int_equal(f.throttle.pause, 0);
    submit(16);
    begin = spw_clock_ns();
    pass(PERIOD, 64, false);
    assert_true(spw_clock_ns() - begin >= WAIT_NS);
    assert_int_equal(f.throttle.pause, PAUSE);
    for (uint32_t i = PAUSE; i > 0; i--) {
        assert_int_equal(f.throttle.pause, i);
        submit(16);
        pass(PERIOD, 64, false);
    }
    assert_int_equal(f.throttle.pause, 0);
    submit(16);
    pass(PERIOD, 64, false);
    assert_int_equal(f.throttle.pause, PAUSE);
    close_fixture();
}

/* It goes on when the device has done its work. */
static void test_caught_up(void **state)
{
    open_fixture(false);
    submit(16);
    pass(PERIOD, 64, false);
    submit(100);
    fake_vm_complete(&f.pool.vm);
    pass(PERIOD, 64, false);
    assert_int_equal(f.throttle.pause, 0);
    close_fixture();
}

/* At the beginning nobody is ahead; and without a period or between marks nobody is held back. */
static void test_not_held_back(void **state)
{
    open_fixture(false);
    pass(0, 0, false);
    submit(16);
    pass(PERIOD, 17, false);
    assert_int_equal(f.throttle.pause, 0);
    pass(PERIOD, 0, false); /* no event since the mark */
    assert_int_equal(f.throttle.pause, 0);
    submit(100);
    pass(0, 0, false);
    assert_int_equal(f.throttle.pause, 0);
    submit(16);
    pass(PERIOD, 16, false);
    assert_int_equal(f.throttle.pause, PAUSE);
    close_fixture();
}

/* With `guarded` only a switch beside running work needs it. */
static void test_held_back_with_guarding(void **state)
{
    open_fixture(true);
    submit(16);
    pass(PERIOD, 10, false);
    submit(100);
    pass(PERIOD, 10, false);
    assert_int_equal(f.throttle.pause, 0);
    submit(16);
    pass(PERIOD, 10, true);
    assert_int_equal(f.throttle.pause, PAUSE);
    close_fixture();
}

static void complete_the_third_time(void *cookie)
{
    int *calls = cookie;

    if (++*calls == 3) {
        fake_vm_complete(&f.pool.vm);
    }
}

/* What the caller does during the wait can end it. */
static void test_work_during_the_wait(void **state)
{
    int calls = 0;

    open_fixture(false);
    f.throttle.wait_ns = UINT64_MAX;
    submit(16);
    pass(PERIOD, 64, false);
    submit(100);
    spw_migrate_throttle_submitter(&f.throttle, &f.log, &stream_b, PERIOD, 64, false,
                                   complete_the_third_time, &calls);
    assert_int_equal(calls, 3);
    assert_int_equal(f.throttle.pause, 0);
    submit(16);
    spw_migrate_throttle_submitter(&f.throttle, &f.log, &stream_b, PERIOD, 64, false,
                                   complete_the_third_time, &calls);
    assert_int_equal(calls, 3); /* there was nothing to wait for */
    close_fixture();
}

static void work_for_long(void *cookie)
{
    uint64_t begin = spw_clock_ns();

    while (spw_clock_ns() - begin < WAIT_NS / 2) {
    }
    ++*(int *)cookie;
}

/* The time of that work counts. */
static void test_long_work_during_the_wait(void **state)
{
    int calls = 0;

    open_fixture(false);
    submit(16);
    pass(PERIOD, 64, false);
    submit(100);
    spw_migrate_throttle_submitter(&f.throttle, &f.log, &stream_b, PERIOD, 64, false, work_for_long,
                                   &calls);
    assert_in_range(calls, 1, 2);
    assert_int_equal(f.throttle.pause, PAUSE);
    close_fixture();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_marks_of_a_stream),
        cmocka_unit_test(test_marks_that_cannot_be_set),
        cmocka_unit_test(test_marks_without_a_period),
        cmocka_unit_test(test_distance_of_marks),
        cmocka_unit_test(test_kinds_of_marks),
        cmocka_unit_test(test_completed),
        cmocka_unit_test(test_nothing_is_known_without_guarding),
        cmocka_unit_test(test_lead),
        cmocka_unit_test(test_held_back),
        cmocka_unit_test(test_caught_up),
        cmocka_unit_test(test_not_held_back),
        cmocka_unit_test(test_held_back_with_guarding),
        cmocka_unit_test(test_work_during_the_wait),
        cmocka_unit_test(test_long_work_during_the_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
