/* Belief in what arguments name: how it is earned, kept, suspended, and lost for ever. */
#include "migrate/validation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { PERIOD = 1000, PER_PERIOD = 10 };

/* An order that is followed, and moves that are evenly spread over it. */
struct run {
    struct spw_validation validation;
    struct spw_predictor_status status;
};

static enum spw_recopy_policy move(struct run *run)
{
    enum spw_recopy_policy worth;

    assert_true(spw_migrate_validation_begin(&run->validation, &run->status));
    run->status.events += PERIOD / PER_PERIOD;
    worth = spw_migrate_validation_recopy_policy(&run->validation, &run->status);
    assert_int_not_equal(worth, SPW_RECOPY_ALWAYS);
    spw_migrate_validation_record(&run->validation, &run->status,
                                  worth == SPW_RECOPY_AND_COMPARE ? SPW_PRECOPY_AUDIT_PASSED
                                                                  : SPW_PRECOPY_RECOPY_SKIPPED);
    return worth;
}

/* How many moves were audited, of so many. */
static int audits(struct run *run, int moves)
{
    int audited = 0;

    for (int i = 0; i < moves; i++) {
        audited += move(run) == SPW_RECOPY_AND_COMPARE;
    }
    return audited;
}

static struct run begin(void)
{
    return (struct run){.status = {.events = 1500, .period = PERIOD, .stable_since = 1500}};
}

static void earn(struct run *run)
{
    assert_int_equal(audits(run, 2 * PER_PERIOD), 2 * PER_PERIOD - 1);
}

static void test_two_periods(void **state)
{
    struct run run = begin();

    assert_int_equal(audits(&run, 2 * PER_PERIOD - 1), 2 * PER_PERIOD - 1);
    assert_int_equal(move(&run), SPW_RECOPY_SKIP);
}

/* However long it is followed, a few moves must have been looked at. */
static void test_few_moves(void **state)
{
    struct run run = begin();

    run.status.events += 100 * PERIOD;
    assert_int_equal(audits(&run, 4), 4);
    assert_int_equal(move(&run), SPW_RECOPY_SKIP);
}

static void test_one_in_sixteen(void **state)
{
    struct run run = begin();

    earn(&run);
    assert_int_equal(audits(&run, 14), 0);
    assert_int_equal(audits(&run, 1), 1);
    assert_int_equal(audits(&run, 160), 10);
    assert_int_equal(run.validation.skipped, 1 + 14 + 150);
}

static void test_another_order(void **state)
{
    struct run run = begin();

    earn(&run);
    run.status.stable_since = run.status.events;
    earn(&run);
    run.status.stable_since = run.status.events;
    run.status.events += 100 * PERIOD;
    assert_int_equal(audits(&run, 4), 4);
    run.status.period = 0;
    assert_true(spw_migrate_validation_begin(&run.validation, &run.status));
    assert_int_equal(spw_migrate_validation_recopy_policy(&run.validation, &run.status),
                     SPW_RECOPY_ALWAYS);
}

/* The order changes while a move is under way, or something comes that was never seen. */
static void test_during_a_move(void **state)
{
    struct run run = begin();

    earn(&run);
    assert_true(spw_migrate_validation_begin(&run.validation, &run.status));
    assert_int_equal(spw_migrate_validation_recopy_policy(&run.validation, &run.status),
                     SPW_RECOPY_SKIP);
    run.status.events += 5;
    run.status.last_mispredict = run.status.events;
    assert_int_equal(spw_migrate_validation_recopy_policy(&run.validation, &run.status),
                     SPW_RECOPY_AND_COMPARE);
    spw_migrate_validation_record(&run.validation, &run.status, SPW_PRECOPY_AUDIT_PASSED);
    assert_int_equal(move(&run), SPW_RECOPY_AND_COMPARE);
    assert_int_equal(move(&run), SPW_RECOPY_SKIP);
    assert_true(spw_migrate_validation_begin(&run.validation, &run.status));
    run.status.stable_since = ++run.status.events;
    assert_int_equal(spw_migrate_validation_recopy_policy(&run.validation, &run.status),
                     SPW_RECOPY_AND_COMPARE);
}

/* What is moved since memory is short was not foreseen. */
static void test_outside_the_order(void **state)
{
    struct run run = begin();

    earn(&run);
    assert_true(spw_migrate_validation_begin(&run.validation, NULL));
    assert_int_equal(spw_migrate_validation_recopy_policy(&run.validation, &run.status),
                     SPW_RECOPY_ALWAYS);
    spw_migrate_validation_record(&run.validation, NULL, SPW_PRECOPY_WASTED);
    assert_int_equal(move(&run), SPW_RECOPY_SKIP);
}

static void test_refuted_for_ever(void **state)
{
    struct run run = begin();

    earn(&run);
    assert_true(spw_migrate_validation_begin(&run.validation, &run.status));
    spw_migrate_validation_record(&run.validation, &run.status, SPW_PRECOPY_AUDIT_FAILED);
    for (int i = 0; i < 10 * PER_PERIOD; i++) {
        assert_false(spw_migrate_validation_begin(&run.validation, &run.status));
        run.status.events += PERIOD / PER_PERIOD;
        assert_int_equal(spw_migrate_validation_recopy_policy(&run.validation, &run.status),
                         SPW_RECOPY_ALWAYS);
    }
    run.status.stable_since = run.status.events;
    assert_int_equal(spw_migrate_validation_recopy_policy(&run.validation, &run.status),
                     SPW_RECOPY_ALWAYS);
    /* One that is made in one go may find the program at rest. */
    assert_true(spw_migrate_validation_begin(&run.validation, NULL));
}

/* How many first copies are made, of so many that all turn out to be of no use. */
static int copies(struct run *run, const struct spw_predictor_status *status, int moves)
{
    int made = 0;

    for (int i = 0; i < moves; i++) {
        if (spw_migrate_validation_begin(&run->validation, status)) {
            spw_migrate_validation_record(&run->validation, &run->status, SPW_PRECOPY_WASTED);
            made++;
        }
    }
    return made;
}

/* A copy that is always in vain is made now and then only; one kind of move is not the other. */
static void test_in_vain(void **state)
{
    struct run run = begin();
    int made = copies(&run, &run.status, 164);

    assert_true(made >= 4 + 8 && made <= 4 + 11);
    assert_int_equal(copies(&run, NULL, 4), 4);
    while (!spw_migrate_validation_begin(&run.validation, &run.status)) {
    }
    spw_migrate_validation_record(&run.validation, &run.status, SPW_PRECOPY_USEFUL);
    assert_int_equal(audits(&run, PER_PERIOD), PER_PERIOD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_periods),      cmocka_unit_test(test_few_moves),
        cmocka_unit_test(test_one_in_sixteen),   cmocka_unit_test(test_another_order),
        cmocka_unit_test(test_during_a_move),    cmocka_unit_test(test_outside_the_order),
        cmocka_unit_test(test_refuted_for_ever), cmocka_unit_test(test_in_vain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
