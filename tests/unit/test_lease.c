/* Leases: which calls a new epoch waits for, and what ends with its thread. */
#include "device/lease.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MS = 1000000, CROWD = SPW_THREAD_SLOTS + 50 };

static int setup(void **state)
{
    (void)spw_thread_slots_join();
    /* The test before may have pretended that the system call is missing. */
    atomic_store(&spw_thread_slots.fenced, false);
    spw_thread_slots_reset();
    spw_device_lease_reset();
    return 0;
}

/* As on a kernel without membarrier. */
static int setup_fenced(void **state)
{
    setup(state);
    atomic_store(&spw_thread_slots.fenced, true);
    spw_thread_self.quick = NULL;
    return 0;
}

static void test_own(void **state)
{
    uint64_t epoch;

    spw_device_lease_enter();
    epoch = spw_device_lease_renew();
    assert_int_not_equal(epoch, 0);
    assert_false(spw_device_lease_ended(epoch, /* except_own */ false));
    assert_true(spw_device_lease_ended(epoch, /* except_own */ true));
    spw_device_lease_leave();
    assert_true(spw_device_lease_ended(epoch, /* except_own */ false));
}

/* The outermost lease counts: it began before the epoch, whatever began inside it. */
static void test_nested(void **state)
{
    uint64_t epoch;

    spw_device_lease_enter();
    epoch = spw_device_lease_renew();
    spw_device_lease_enter();
    spw_device_lease_leave();
    assert_false(spw_device_lease_ended(epoch, /* except_own */ false));
    spw_device_lease_leave();
    spw_device_lease_enter();
    assert_true(spw_device_lease_ended(epoch, /* except_own */ false));
    spw_device_lease_leave();
}

struct caller {
    sem_t inside; /* posted when it holds a lease */
    sem_t end;    /* told to end it */
    bool dies;    /* ends its thread inside the call */
};

static void *call(void *cookie)
{
    struct caller *caller = cookie;

    spw_device_lease_enter();
    sem_post(&caller->inside);
    sem_wait(&caller->end);
    if (caller->dies) {
        pthread_exit(NULL);
    }
    spw_device_lease_leave();
    return NULL;
}

static pthread_t begin_call(struct caller *caller)
{
    pthread_t thread;

    sem_init(&caller->inside, /* pshared */ 0, 0);
    sem_init(&caller->end, /* pshared */ 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, call, caller), 0);
    sem_wait(&caller->inside);
    return thread;
}

static void end_call(struct caller *caller, pthread_t thread)
{
    sem_post(&caller->end);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void waits_for_a_thread(bool dies)
{
    struct caller caller = {.dies = dies};
    pthread_t thread = begin_call(&caller);
    uint64_t epoch = spw_device_lease_renew();

    assert_false(spw_device_lease_await(epoch, /* except_own */ true, 5 * MS));
    end_call(&caller, thread);
    assert_true(spw_device_lease_await(epoch, /* except_own */ true, 0));
}

static void test_another_thread(void **state)
{
    waits_for_a_thread(/* dies */ false);
}

static void test_a_thread_that_dies(void **state)
{
    waits_for_a_thread(/* dies */ true);
}

/* More threads than slots: those without one share the last. */
static void test_crowd(void **state)
{
    static struct caller callers[CROWD];
    static pthread_t threads[CROWD];
    uint64_t epoch;

    for (int i = 0; i < CROWD; i++) {
        threads[i] = begin_call(&callers[i]);
    }
    epoch = spw_device_lease_renew();
    for (int i = 0; i < CROWD; i++) {
        assert_false(spw_device_lease_ended(epoch, /* except_own */ true));
        end_call(&callers[i], threads[i]);
    }
    assert_true(spw_device_lease_ended(epoch, /* except_own */ true));
}

/* A child has only the thread that forked, and that one's lease. */
static void test_fork(void **state)
{
    struct caller caller = {0};
    pthread_t thread = begin_call(&caller);
    int status = -1;
    pid_t child;

    spw_device_lease_enter();
    child = fork();
    if (child == 0) {
        uint64_t epoch;
        bool held;

        spw_thread_slots_reset();
        spw_device_lease_reset();
        epoch = spw_device_lease_renew();
        held = !spw_device_lease_ended(epoch, /* except_own */ false);
        spw_device_lease_leave();
        _exit(epoch != 0 && held && spw_device_lease_ended(epoch, /* except_own */ false) ? 0 : 1);
    }
    spw_device_lease_leave();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    end_call(&caller, thread);
}

#define TEST(name) cmocka_unit_test_setup(name, setup), cmocka_unit_test_setup(name, setup_fenced)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_own),
        TEST(test_nested),
        TEST(test_another_thread),
        TEST(test_a_thread_that_dies),
        TEST(test_crowd),
        TEST(test_fork),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
