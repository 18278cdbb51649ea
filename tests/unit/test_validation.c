/* Write validation: how it is earned, kept, suspended, and ended by a failed audit. */
#include "migrate/move/validation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { PERIOD = 1000, PER_PERIOD = 10 };

/* A repetition that is followed, with migrations evenly spread over it. */
struct run {
    struct spw_validation validation;
    struct spw_predictor_status status;
};

static enum spw_recopy_policy move(struct run *run)
{
    enum spw_recopy_policy policy;

    assert_true(spw_migrate_validation_begin(&run->validation, &run->status));
    run->status.events += PERIOD / PER_PERIOD;
    policy = spw_migrate_validation_recopy_policy(&run->validation, &run->status);
    assert_int_not_equal(policy, SPW_RECOPY_ALWAYS);
    spw_migrate_validation_record(&run->validation, &run->status,
                                  policy == SPW_RECOPY_AND_COMPARE ? SPW_PRECOPY_AUDIT_PASSED
                                                                   : SPW_PRECOPY_RECOPY_SKIPPED);
    return policy;
}

/* The number of audited ones among so many migrations. */
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

static void validate(struct run *run)
{
    assert_int_equal(audits(run, 2 * PER_PERIOD), 2 * PER_PERIOD - 1);
}

static void test_skips_after_two_periods(void **state)
{
    struct run run = begin();

    assert_int_equal(audits(&run, 2 * PER_PERIOD - 1), 2 * PER_PERIOD - 1);
    assert_int_equal(move(&run), SPW_RECOPY_SKIP);
}

/* However long a repetition is followed, some migrations must be audited. */
static void test_needs_some_audits(void **state)
{
    struct run run = begin();

    run.status.events += 100 * PERIOD;
    assert_int_equal(audits(&run, 4), 4);
    assert_int_equal(move(&run), SPW_RECOPY_SKIP);
}

static void test_audits_one_in_sixteen(void **state)
{
    struct run run = begin();

    validate(&run);
    assert_int_equal(audits(&run, 14), 0);
    assert_int_equal(audits(&run, 1), 1);
    assert_int_equal(audits(&run, 160), 10);
    assert_int_equal(run.validation.skipped, 1 + 14 + 150);
}

static void test_another_repetition(void **state)
{
    struct run run = begin();

    validate(&run);
    run.status.stable_since = run.status.events;
    validate(&run);
    run.status.stable_since = run.status.events;
    run.status.events += 100 * PERIOD;
    assert_int_equal(audits(&run, 4), 4);
    run.status.period = 0;
    assert_true(spw_migrate_validation_begin(&run.validation, &run.status));
    assert_int_equal(spw_migrate_validation_recopy_policy(&run.validation, &run.status),
                     SPW_RECOPY_ALWAYS);
}

/* The repetition changes, or a misprediction occurs, while a migration is in flight. */
static void test_changes_during_a_migration(void **state)
{
    struct run run = begin();

    validate(&run);
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

/* A migration because of a memory shortage is not predicted. */
static void test_unpredicted_migration(void **state)
{
    struct run run = begin();

    validate(&run);
    assert_true(spw_migrate_validation_begin(&run.validation, NULL));
    assert_int_equal(spw_migrate_validation_recopy_policy(&run.validation, &run.status),
                     SPW_RECOPY_ALWAYS);
    spw_migrate_validation_record(&run.validation, NULL, SPW_PRECOPY_WASTED);
    assert_int_equal(move(&run), SPW_RECOPY_SKIP);
}

static void test_failed_audit_is_final(void **state)
{
    struct run run = begin();

    validate(&run);
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
    /* One that runs at once may find nothing submitted meanwhile. */
    assert_true(spw_migrate_validation_begin(&run.validation, NULL));
}

/* The number of pre-copies made in so many migrations, all of which turn out to be wasted. */
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

/* After wasted pre-copies only a few are made; predicted migrations are counted apart from others.
 * */
static void test_wasted_precopies(void **state)
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
        cmocka_unit_test(test_skips_after_two_periods),
        cmocka_unit_test(test_needs_some_audits),
        cmocka_unit_test(test_audits_one_in_sixteen),
        cmocka_unit_test(test_another_repetition),
        cmocka_unit_test(test_changes_during_a_migration),
        cmocka_unit_test(test_unpredicted_migration),
        cmocka_unit_test(test_failed_audit_is_final),
        cmocka_unit_test(test_wasted_precopies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
