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
    struct spw_validation evidence;
    struct spw_predictor_course course;
};

static enum spw_validation_worth move(struct run *run)
{
    enum spw_validation_worth worth;

    assert_true(spw_migrate_validation_begin(&run->evidence, &run->course));
    run->course.events += PERIOD / PER_PERIOD;
    worth = spw_migrate_validation_weigh(&run->evidence, &run->course);
    assert_int_not_equal(worth, SPW_VALIDATION_NONE);
    spw_migrate_validation_note(&run->evidence, &run->course,
                                worth == SPW_VALIDATION_AUDIT ? SPW_VALIDATION_CLEAN
                                                              : SPW_VALIDATION_BELIEVED);
    return worth;
}

/* How many moves were audited, of so many. */
static int audits(struct run *run, int moves)
{
    int audited = 0;

    for (int i = 0; i < moves; i++) {
        audited += move(run) == SPW_VALIDATION_AUDIT;
    }
    return audited;
}

static struct run begin(void)
{
    return (struct run){.course = {.events = 1500, .period = PERIOD, .since = 1500}};
}

static void earn(struct run *run)
{
    assert_int_equal(audits(run, 2 * PER_PERIOD), 2 * PER_PERIOD - 1);
}

static void test_two_periods(void **state)
{
    struct run run = begin();

    assert_int_equal(audits(&run, 2 * PER_PERIOD - 1), 2 * PER_PERIOD - 1);
    assert_int_equal(move(&run), SPW_VALIDATION_BELIEF);
}

/* However long it is followed, a few moves must have been looked at. */
static void test_few_moves(void **state)
{
    struct run run = begin();

    run.course.events += 100 * PERIOD;
    assert_int_equal(audits(&run, 4), 4);
    assert_int_equal(move(&run), SPW_VALIDATION_BELIEF);
}

static void test_one_in_sixteen(void **state)
{
    struct run run = begin();

    earn(&run);
    assert_int_equal(audits(&run, 14), 0);
    assert_int_equal(audits(&run, 1), 1);
    assert_int_equal(audits(&run, 160), 10);
    assert_int_equal(run.evidence.believed, 1 + 14 + 150);
}

static void test_another_order(void **state)
{
    struct run run = begin();

    earn(&run);
    run.course.since = run.course.events;
    earn(&run);
    run.course.since = run.course.events;
    run.course.events += 100 * PERIOD;
    assert_int_equal(audits(&run, 4), 4);
    run.course.period = 0;
    assert_true(spw_migrate_validation_begin(&run.evidence, &run.course));
    assert_int_equal(spw_migrate_validation_weigh(&run.evidence, &run.course), SPW_VALIDATION_NONE);
}

/* The order changes while a move is under way, or something comes that was never seen. */
static void test_during_a_move(void **state)
{
    struct run run = begin();

    earn(&run);
    assert_true(spw_migrate_validation_begin(&run.evidence, &run.course));
    assert_int_equal(spw_migrate_validation_weigh(&run.evidence, &run.course),
                     SPW_VALIDATION_BELIEF);
    run.course.events += 5;
    run.course.surprise = run.course.events;
    assert_int_equal(spw_migrate_validation_weigh(&run.evidence, &run.course),
                     SPW_VALIDATION_AUDIT);
    spw_migrate_validation_note(&run.evidence, &run.course, SPW_VALIDATION_CLEAN);
    assert_int_equal(move(&run), SPW_VALIDATION_AUDIT);
    assert_int_equal(move(&run), SPW_VALIDATION_BELIEF);
    assert_true(spw_migrate_validation_begin(&run.evidence, &run.course));
    run.course.since = ++run.course.events;
    assert_int_equal(spw_migrate_validation_weigh(&run.evidence, &run.course),
                     SPW_VALIDATION_AUDIT);
}

/* What is moved since memory is short was not foreseen. */
static void test_outside_the_order(void **state)
{
    struct run run = begin();

    earn(&run);
    assert_true(spw_migrate_validation_begin(&run.evidence, NULL));
    assert_int_equal(spw_migrate_validation_weigh(&run.evidence, &run.course), SPW_VALIDATION_NONE);
    spw_migrate_validation_note(&run.evidence, NULL, SPW_VALIDATION_IN_VAIN);
    assert_int_equal(move(&run), SPW_VALIDATION_BELIEF);
}

static void test_refuted_for_ever(void **state)
{
    struct run run = begin();

    earn(&run);
    assert_true(spw_migrate_validation_begin(&run.evidence, &run.course));
    spw_migrate_validation_note(&run.evidence, &run.course, SPW_VALIDATION_WRONG);
    for (int i = 0; i < 10 * PER_PERIOD; i++) {
        assert_false(spw_migrate_validation_begin(&run.evidence, &run.course));
        run.course.events += PERIOD / PER_PERIOD;
        assert_int_equal(spw_migrate_validation_weigh(&run.evidence, &run.course),
                         SPW_VALIDATION_NONE);
    }
    run.course.since = run.course.events;
    assert_int_equal(spw_migrate_validation_weigh(&run.evidence, &run.course), SPW_VALIDATION_NONE);
    /* One that is made in one go may find the program at rest. */
    assert_true(spw_migrate_validation_begin(&run.evidence, NULL));
}

/* How many first copies are made, of so many that all turn out to be of no use. */
static int copies(struct run *run, const struct spw_predictor_course *course, int moves)
{
    int made = 0;

    for (int i = 0; i < moves; i++) {
        if (spw_migrate_validation_begin(&run->evidence, course)) {
            spw_migrate_validation_note(&run->evidence, &run->course, SPW_VALIDATION_IN_VAIN);
            made++;
        }
    }
    return made;
}

/* A copy that is always in vain is made now and then only; one kind of move is not the other. */
static void test_in_vain(void **state)
{
    struct run run = begin();
    int made = copies(&run, &run.course, 164);

    assert_true(made >= 4 + 8 && made <= 4 + 11);
    assert_int_equal(copies(&run, NULL, 4), 4);
    while (!spw_migrate_validation_begin(&run.evidence, &run.course)) {
    }
    spw_migrate_validation_note(&run.evidence, &run.course, SPW_VALIDATION_OF_USE);
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
