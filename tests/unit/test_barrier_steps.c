/* A pause that holds the submit barrier, before it moves memory: it lets single calls pass, and
 * lends the barrier to migrations. */
#include "migrate/move/barrier.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { MS = 1000000, LONG_MS = 20000, CALLERS = 3, ROUNDS = 2000 };

static int setup(void **state)
{
    (void)spw_thread_slots_join();
    spw_thread_slots_reset();
    spw_migrate_barrier_reset();
    spw_migrate_barrier_arm();
    return 0;
}

static _Atomic int waiting, passed;

static void note_arrival(void)
{
    atomic_fetch_add(&waiting, 1);
}

static void hold(void)
{
    atomic_store(&waiting, 0);
    atomic_store(&passed, 0);
    assert_true(spw_migrate_barrier_hold(MS, note_arrival));
}

static void await(_Atomic int *value, int least)
{
    while (atomic_load(value) < least) {
        usleep(100);
    }
}

static void *submit(void *unused)
{
    spw_migrate_barrier_acquire();
    atomic_fetch_add(&passed, 1);
    spw_migrate_barrier_release();
    return NULL;
}

static void *ask_for_memory(void *unused)
{
    spw_migrate_barrier_pass();
    atomic_fetch_add(&passed, 1);
    return NULL;
}

static void *end_context(void *unused)
{
    spw_migrate_barrier_await_end();
    atomic_fetch_add(&passed, 1);
    return NULL;
}

static void start(pthread_t *thread, void *(*call)(void *), void *argument)
{
    assert_int_equal(pthread_create(thread, NULL, call, argument), 0);
}

static void join_all(pthread_t *threads, int count)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

/* Each step lets one of those that wait pass, and no other. */
static void steps_let_pass(void *(*call)(void *))
{
    pthread_t threads[CALLERS];

    hold();
    for (int i = 0; i < CALLERS; i++) {
        start(&threads[i], call, NULL);
    }
    await(&waiting, CALLERS);
    for (int i = 1; i < CALLERS; i++) {
        spw_migrate_barrier_step(UINT64_C(1) * LONG_MS * MS);
        await(&passed, i);
        usleep(10000);
        assert_int_equal(atomic_load(&passed), i);
    }
    spw_migrate_barrier_release_hold();
    join_all(threads, CALLERS);
    assert_int_equal(atomic_load(&passed), CALLERS);
}

static void test_submissions(void **state)
{
    steps_let_pass(submit);
}

static void test_requests_for_memory(void **state)
{
    steps_let_pass(ask_for_memory);
}

/* A step that nobody waits for is over with it: who comes later waits. */
static void test_nobody_waits(void **state)
{
    pthread_t thread;

    hold();
    spw_migrate_barrier_step(MS);
    assert_int_equal(atomic_load(&spw_migrate_barrier.loan), SPW_BARRIER_LENT);
    start(&thread, submit, NULL);
    await(&waiting, 1);
    usleep(10000);
    assert_int_equal(atomic_load(&passed), 0);
    spw_migrate_barrier_release_hold();
    join_all(&thread, 1);
}

/* The end of a context must not be under way when memory moves. */
static void test_some_calls_never_pass(void **state)
{
    pthread_t thread;

    hold();
    start(&thread, end_context, NULL);
    await(&waiting, 1);
    spw_migrate_barrier_step(10 * MS);
    usleep(10000);
    assert_int_equal(atomic_load(&passed), 0);
    spw_migrate_barrier_release_hold();
    join_all(&thread, 1);
    spw_migrate_barrier_await_end(); /* nobody holds it */
}

/* ---- a call that is under way ---- */

static _Atomic bool leaves;

static void *stay_inside(void *unused)
{
    spw_migrate_barrier_acquire();
    atomic_fetch_add(&passed, 1);
    while (!atomic_load(&leaves)) {
        usleep(100);
    }
    spw_migrate_barrier_release();
    return NULL;
}

/* A submission that has passed is waited for. */
static void test_under_way(void **state)
{
    pthread_t thread;

    atomic_store(&leaves, false);
    hold();
    start(&thread, stay_inside, NULL);
    await(&waiting, 1);
    assert_true(spw_migrate_barrier_await_quiet(0));
    spw_migrate_barrier_step(UINT64_C(1) * LONG_MS * MS);
    assert_false(spw_migrate_barrier_await_quiet(5 * MS));
    assert_false(spw_migrate_barrier_claim(5 * MS));
    atomic_store(&leaves, true);
    assert_true(spw_migrate_barrier_await_quiet(UINT64_C(1) * LONG_MS * MS));
    spw_migrate_barrier_release_hold();
    join_all(&thread, 1);
}

/* ---- migrations ---- */

struct migration {
    _Atomic int stage; /* 1: it has the barrier, 2: it has been refused, 3: it may give it back */
};

static void *migrate(void *argument)
{
    struct migration *migration = argument;
    bool quiet = spw_migrate_barrier_quiesce(0);

    atomic_store(&migration->stage, quiet ? 1 : 2);
    if (quiet) {
        await(&migration->stage, 3);
        spw_migrate_barrier_resume();
    }
    return NULL;
}

static void start_migration(pthread_t *thread, struct migration *migration)
{
    atomic_store(&migration->stage, 0);
    start(thread, migrate, migration);
    await(&migration->stage, 1);
}

static void end_migration(pthread_t thread, struct migration *migration)
{
    if (atomic_load(&migration->stage) == 1) {
        atomic_store(&migration->stage, 3);
    }
    join_all(&thread, 1);
}

/* While one has it, no call passes, no other one has it, and no pause begins to move memory. */
static void test_a_migration_borrows(void **state)
{
    struct migration first, second;
    pthread_t threads[2], caller;

    hold();
    start(&caller, submit, NULL);
    await(&waiting, 1);
    start_migration(&threads[0], &first);
    assert_int_equal(atomic_load(&first.stage), 1);
    start_migration(&threads[1], &second);
    assert_int_equal(atomic_load(&second.stage), 2);
    spw_migrate_barrier_step(5 * MS);
    usleep(5000);
    assert_int_equal(atomic_load(&passed), 0);
    assert_false(spw_migrate_barrier_claim(5 * MS));
    end_migration(threads[1], &second);
    end_migration(threads[0], &first);
    assert_true(spw_migrate_barrier_claim(0));
    start_migration(&threads[0], &first);
    assert_int_equal(atomic_load(&first.stage), 2); /* memory moves now */
    end_migration(threads[0], &first);
    spw_migrate_barrier_release_hold();
    join_all(&caller, 1);
}

/* A step waits for the end of a migration, and so does a pause that is to move memory. */
static void test_a_step_after_a_migration(void **state)
{
    struct migration migration;
    pthread_t thread, caller;

    hold();
    start(&caller, submit, NULL);
    await(&waiting, 1);
    start_migration(&thread, &migration);
    atomic_store(&migration.stage, 3); /* it gives the barrier back now */
    spw_migrate_barrier_step(UINT64_C(1) * LONG_MS * MS);
    await(&passed, 1);
    join_all(&thread, 1);
    join_all(&caller, 1);
    start_migration(&thread, &migration);
    atomic_store(&migration.stage, 3);
    assert_true(spw_migrate_barrier_claim(UINT64_C(1) * LONG_MS * MS));
    join_all(&thread, 1);
    spw_migrate_barrier_release_hold();
}

/* The pause ends before the migration: nobody passes until that has ended too. */
static void test_the_pause_ends_first(void **state)
{
    struct migration migration;
    pthread_t thread, caller;

    hold();
    start_migration(&thread, &migration);
    spw_migrate_barrier_release_hold();
    assert_false(spw_migrate_barrier_inside());
    spw_migrate_barrier_pass();
    start(&caller, submit, NULL);
    usleep(10000);
    assert_int_equal(atomic_load(&passed), 0);
    assert_false(spw_migrate_barrier_hold(MS, note_arrival));
    end_migration(thread, &migration);
    join_all(&caller, 1);
    assert_int_equal(atomic_load(&passed), 1);
    assert_true(spw_migrate_barrier_quiesce(0));
    assert_false(spw_migrate_barrier_quiesce(0));
    spw_migrate_barrier_resume();
}

/* ---- all at once ---- */

static _Atomic bool ends;
static _Atomic int inside; /* submissions under way */
static _Atomic int alone;  /* those that nobody else may be beside */

static void *submit_often(void *unused)
{
    while (!atomic_load(&ends)) {
        spw_migrate_barrier_pass();
        spw_migrate_barrier_acquire();
        atomic_fetch_add(&inside, 1);
        if (atomic_load(&alone) != 0) {
            abort();
        }
        atomic_fetch_sub(&inside, 1);
        spw_migrate_barrier_release();
    }
    return NULL;
}

static void be_alone(void)
{
    if (atomic_fetch_add(&alone, 1) != 0 || atomic_load(&inside) != 0) {
        abort();
    }
    atomic_fetch_sub(&alone, 1);
}

static void *migrate_often(void *unused)
{
    while (!atomic_load(&ends)) {
        if (spw_migrate_barrier_quiesce(MS)) {
            be_alone();
            spw_migrate_barrier_resume();
        }
    }
    return NULL;
}

/* Whoever has the barrier closed to itself finds no call under way, and nobody else like it. */
static void test_all_at_once(void **state)
{
    pthread_t threads[CALLERS + 2];
    int claims = 0;

    atomic_store(&ends, false);
    for (int i = 0; i < CALLERS + 2; i++) {
        start(&threads[i], i < CALLERS ? submit_often : migrate_often, NULL);
    }
    for (int i = 0; i < ROUNDS; i++) {
        if (spw_migrate_barrier_hold(MS, NULL)) {
            for (int k = 0; k < i % CALLERS; k++) {
                spw_migrate_barrier_step(MS);
                (void)spw_migrate_barrier_await_quiet(MS);
            }
            if (i % 4 > 0 && spw_migrate_barrier_claim(MS)) {
                be_alone();
                claims++;
            }
            spw_migrate_barrier_release_hold();
        }
    }
    atomic_store(&ends, true);
    join_all(threads, CALLERS + 2);
    assert_int_not_equal(claims, 0);
    assert_int_equal(atomic_load(&spw_migrate_barrier.closed), 0);
    assert_int_equal(atomic_load(&spw_migrate_barrier.loan), SPW_BARRIER_OWN);
}

/* A child of fork has nothing of the pause. */
static void test_reset(void **state)
{
    hold();
    spw_migrate_barrier_depth = 0; /* of the thread that held it */
    spw_migrate_barrier_reset();
    assert_true(spw_migrate_barrier_quiesce(0));
    assert_false(spw_migrate_barrier_quiesce(0));
    spw_migrate_barrier_resume();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_submissions, setup),
        cmocka_unit_test_setup(test_requests_for_memory, setup),
        cmocka_unit_test_setup(test_nobody_waits, setup),
        cmocka_unit_test_setup(test_some_calls_never_pass, setup),
        cmocka_unit_test_setup(test_under_way, setup),
        cmocka_unit_test_setup(test_a_migration_borrows, setup),
        cmocka_unit_test_setup(test_a_step_after_a_migration, setup),
        cmocka_unit_test_setup(test_the_pause_ends_first, setup),
        cmocka_unit_test_setup(test_all_at_once, setup),
        cmocka_unit_test_setup(test_reset, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
