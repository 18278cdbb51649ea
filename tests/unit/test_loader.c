#include "system/loader.h"

#include "system/clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { FORKS = 300, CHILD_S = 10, ITERATORS = 2 };

static _Atomic bool is_over;

static void parent(void)
{
    spw_loader_after_fork(/* child */ false);
}

static void child(void)
{
    spw_loader_after_fork(/* child */ true);
}

static int visit(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)info;
    (void)size;
    (void)context;
    return 0;
}

static void *iterate(void *unused)
{
    while (!atomic_load(&is_over)) {
        (void)spw_loader_iterate(visit, NULL);
    }
    return unused;
}

static void in_threads(void *(*body)(void *), int count, void (*meanwhile)(void))
{
    pthread_t threads[ITERATORS];

    atomic_store(&is_over, false);
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, body, NULL), 0);
    }
    meanwhile();
    atomic_store(&is_over, true);
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

/* A child that hangs dies of SIGALRM. */
static void fork_again_and_again(void)
{
    for (int i = 0; i < FORKS; i++) {
        int status = -1;
        pid_t forked = fork();

        if (forked == 0) {
            alarm(CHILD_S);
            (void)dl_iterate_phdr(visit, NULL);
            (void)spw_loader_iterate(visit, NULL);
            _exit(0);
        }
        assert_int_equal(waitpid(forked, &status, 0), forked);
        assert_int_equal(status, 0);
    }
}

static void test_children_can_use_the_loader(void **state)
{
    in_threads(iterate, ITERATORS, fork_again_and_again);
    (void)state;
}

static _Atomic bool is_inside;

static void *stay_inside(void *unused)
{
    spw_loader_enter();
    atomic_store(&is_inside, true);
    while (!atomic_load(&is_over)) {
        (void)usleep(1000);
    }
    spw_loader_leave();
    return unused;
}

static void fork_beside_a_stuck_thread(void)
{
    uint64_t begin;

    while (!atomic_load(&is_inside)) {
        (void)usleep(1000);
    }
    begin = spw_clock_ns();
    spw_loader_before_fork();
    assert_true(spw_clock_ns() - begin >= SPW_LOADER_FORK_MS * UINT64_C(1000000));
    spw_loader_after_fork(/* child */ false);
}

/* The time that counts is what the thread had of the processor, so only the lower bound is sharp.
 */
static void test_a_fork_does_not_wait_for_ever(void **state)
{
    in_threads(stay_inside, 1, fork_beside_a_stuck_thread);
    (void)state;
}

static void *enter_once(void *unused)
{
    spw_loader_enter();
    atomic_store(&is_inside, true);
    spw_loader_leave();
    return unused;
}

static void see_that_nobody_enters(void)
{
    (void)usleep(20000);
    assert_false(atomic_load(&is_inside));
    spw_loader_after_fork(/* child */ false);
}

static void test_nobody_enters_while_a_fork_is_under_way(void **state)
{
    atomic_store(&is_inside, false);
    spw_loader_before_fork();
    in_threads(enter_once, 1, see_that_nobody_enters);
    assert_true(atomic_load(&is_inside));
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_children_can_use_the_loader),
        cmocka_unit_test(test_a_fork_does_not_wait_for_ever),
        cmocka_unit_test(test_nobody_enters_while_a_fork_is_under_way),
    };

    if (pthread_atfork(spw_loader_before_fork, parent, child) != 0) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
