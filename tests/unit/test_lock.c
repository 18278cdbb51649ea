#include "system/lock.h"

#include "child.h"

#include <string.h>

/* For ThreadSanitizer: the wrong orders of this test are deliberate. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "detect_deadlocks=0";
}

static uint64_t disorders(void)
{
    return atomic_load(&spw_locks.disorders);
}

static void test_order_of_ranks_is_accepted(void **state)
{
    uint64_t before = disorders();
    struct spw_lock pool;

    spw_lock_init(&pool, SPW_LOCK_RANK_pool);
    for (int i = 0; i < 2; i++) {
        spw_lock(&spw_locks.process);
        spw_lock(&pool);
        spw_lock(&spw_locks.ledger);
        spw_unlock(&spw_locks.ledger);
        spw_unlock(&pool);
        spw_unlock(&spw_locks.process);
    }
    spw_lock_fini(&pool);
    assert_int_equal(disorders(), before);
}

static void test_wrong_order_is_counted(void **state)
{
    uint64_t before = disorders();

    spw_lock(&spw_locks.ledger);
    spw_lock(&spw_locks.streams);
    assert_int_equal(disorders(), before + 1);
    spw_unlock(&spw_locks.streams);
    spw_unlock(&spw_locks.ledger);
    spw_lock(&spw_locks.streams);
    spw_lock(&spw_locks.ledger);
    assert_int_equal(disorders(), before + 1);
    spw_unlock(&spw_locks.ledger);
    spw_unlock(&spw_locks.streams);
}

static void test_two_of_one_rank_are_counted(void **state)
{
    uint64_t before = disorders();
    struct spw_lock first, second;

    spw_lock_init(&first, SPW_LOCK_RANK_pool);
    spw_lock_init(&second, SPW_LOCK_RANK_pool);
    spw_lock(&first);
    spw_lock(&second);
    assert_int_equal(disorders(), before + 1);
    spw_unlock(&second);
    spw_unlock(&first);
    spw_lock_fini(&second);
    spw_lock_fini(&first);
}

static void test_a_lock_that_is_tried_may_be_of_any_rank(void **state)
{
    uint64_t before = disorders();

    spw_lock(&spw_locks.ledger);
    assert_true(spw_lock_try(&spw_locks.streams));
    assert_int_equal(disorders(), before);
    spw_unlock(&spw_locks.streams);
    spw_unlock(&spw_locks.ledger);
    /* It counts as held nevertheless. */
    assert_true(spw_lock_try(&spw_locks.ledger));
    assert_false(spw_lock_try(&spw_locks.ledger));
    spw_lock(&spw_locks.streams);
    assert_int_equal(disorders(), before + 1);
    spw_unlock(&spw_locks.streams);
    spw_unlock(&spw_locks.ledger);
}

static void test_a_release_without_the_lock_is_counted(void **state)
{
    uint64_t before = disorders();
    struct spw_lock lock;

    spw_lock_init(&lock, SPW_LOCK_RANK_pool);
    spw_lock(&spw_locks.ledger);
    pthread_mutex_lock(&lock.mutex);
    spw_unlock(&lock);
    assert_int_equal(disorders(), before + 1);
    spw_unlock(&spw_locks.ledger);
    assert_int_equal(disorders(), before + 1);
    spw_lock_fini(&lock);
}

static void report_disorder(void)
{
    const char *path = "lock_order.txt";

    redirect_errors(path);
    spw_lock(&spw_locks.ledger);
    spw_lock(&spw_locks.process);
    CHECK(strcmp(content(path), "spillway: lock process is taken while ledger is held: this order "
                                "may deadlock\n") == 0);
    unlink(path);
}

static void test_wrong_order_is_reported_in_one_line(void **state)
{
    in_child(report_disorder);
}

/* ---- fork ---- */

static bool is_free(struct spw_lock *lock)
{
    bool taken = spw_lock_try(lock);

    if (taken) {
        spw_unlock(lock);
    }
    return taken;
}

static struct spw_lock pools[3];

static bool are_free(void)
{
    bool every = is_free(&pools[0]) && is_free(&pools[2]);

#define SPW_LOCK(name, guards) every = every && is_free(&spw_locks.name);
#define SPW_LOCK_EACH(name, guards)
#define SPW_LOCK_ALONE SPW_LOCK
#include "system/lock.def"
#undef SPW_LOCK
#undef SPW_LOCK_EACH
#undef SPW_LOCK_ALONE
    return every;
}

static void test_all_are_held_around_fork(void **state)
{
    int status = 1;
    pid_t child;

    for (int i = 0; i < 3; i++) {
        spw_lock_init(&pools[i], SPW_LOCK_RANK_pool);
    }
    spw_lock_fini(&pools[1]);
    pthread_mutex_init(&pools[1].mutex, NULL); /* the memory is used for something else */
    spw_lock(&spw_locks.modules); /* as another thread, which is not there in the child */
    spw_lock_all();
    assert_false(is_free(&pools[0]));
    assert_true(is_free(&pools[1]));
    assert_false(is_free(&pools[2]));
#define SPW_LOCK(name, guards) assert_false(is_free(&spw_locks.name));
#define SPW_LOCK_EACH(name, guards)
#define SPW_LOCK_ALONE(name, guards)
#include "system/lock.def"
#undef SPW_LOCK
#undef SPW_LOCK_EACH
#undef SPW_LOCK_ALONE
    child = fork();
    spw_lock_release_all(child == 0);
    if (child == 0) {
        _exit(are_free() ? 0 : 1);
    }
    spw_unlock(&spw_locks.modules);
    assert_true(are_free());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    spw_lock_fini(&pools[0]);
    spw_lock_fini(&pools[2]);
}

enum { ROUNDS = 20000 };

static size_t turns;

static void *fork_often(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        spw_lock_all();
        turns++;
        spw_lock_release_all(/* child */ false);
    }
    return unused;
}

/* Threads that fork at the same time do not release each other's locks. */
static void test_two_fork_at_once(void **state)
{
    pthread_t other;

    turns = 0;
    assert_int_equal(pthread_create(&other, NULL, fork_often, NULL), 0);
    (void)fork_often(NULL);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(turns, 2 * ROUNDS);
    assert_true(is_free(&spw_locks.process));
}

static struct spw_lock waited;
static pthread_cond_t come = PTHREAD_COND_INITIALIZER;
static bool waits, has_come, went_on;

static void *wait_cancelled(void *unused)
{
    (void)pthread_cancel(pthread_self());
    spw_lock(&waited);
    waits = true;
    while (!has_come) {
        spw_lock_wait(&waited, &come);
    }
    went_on = true;
    spw_unlock(&waited);
    return unused;
}

/* A thread that is cancelled while it waits for a condition goes on, and gives the lock back. */
static void test_cancelled(void **state)
{
    bool begun = false;
    pthread_t thread;

    spw_lock_init(&waited, SPW_LOCK_RANK_pool);
    assert_int_equal(pthread_create(&thread, NULL, wait_cancelled, NULL), 0);
    while (!begun) {
        spw_lock(&waited);
        begun = waits;
        has_come = begun;
        pthread_cond_broadcast(&come);
        spw_unlock(&waited);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(went_on);
    assert_true(spw_lock_try(&waited));
    spw_unlock(&waited);
    spw_lock_fini(&waited);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_of_ranks_is_accepted),
        cmocka_unit_test(test_wrong_order_is_counted),
        cmocka_unit_test(test_two_of_one_rank_are_counted),
        cmocka_unit_test(test_a_lock_that_is_tried_may_be_of_any_rank),
        cmocka_unit_test(test_a_release_without_the_lock_is_counted),
        cmocka_unit_test(test_wrong_order_is_reported_in_one_line),
        cmocka_unit_test(test_all_are_held_around_fork),
        cmocka_unit_test(test_two_fork_at_once),
        cmocka_unit_test(test_cancelled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
