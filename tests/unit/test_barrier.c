/* The submit barrier: who passes, who waits, how long quiescing waits, and the counts. */
#include "migrate/move/barrier.h"

#include "system/clock.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "valgrind.h"

enum { MS = 1000000, THREADS = 4, CROWD = SPW_THREAD_SLOTS + 50 };

static int setup(void **state)
{
    (void)spw_thread_slots_join();
    /* The test before may have pretended that the system call is missing. */
    atomic_store(&spw_thread_slots.fenced, false);
    spw_thread_slots_reset();
    spw_migrate_barrier_reset();
    spw_migrate_barrier_arm();
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

static void test_unarmed(void **state)
{
    atomic_store(&spw_migrate_barrier.armed, false);
    spw_migrate_barrier_acquire();
    assert_false(spw_migrate_barrier_inside());
    /* A call that was under way when the barrier was armed is not counted. */
    spw_migrate_barrier_arm();
    spw_migrate_barrier_release();
    assert_false(spw_migrate_barrier_inside());
    assert_true(spw_migrate_barrier_quiesce(0));
    spw_migrate_barrier_resume();
}

static void test_counts(void **state)
{
    uint64_t before = spw_migrate_barrier_submissions();

    spw_migrate_barrier_acquire();
    spw_migrate_barrier_acquire();
    assert_true(spw_migrate_barrier_inside());
    spw_migrate_barrier_release();
    assert_true(spw_migrate_barrier_inside());
    assert_int_equal(spw_migrate_barrier_submissions(), before);
    spw_migrate_barrier_release();
    assert_false(spw_migrate_barrier_inside());
    assert_int_equal(spw_migrate_barrier_submissions(), before + 1);
}

/* The thread that closed the barrier may submit, and a thread that is inside may close it. */
static void test_closer_passes(void **state)
{
    assert_true(spw_migrate_barrier_quiesce(0));
    spw_migrate_barrier_acquire();
    spw_migrate_barrier_release();
    assert_false(spw_migrate_barrier_quiesce(0));
    spw_migrate_barrier_resume();
    spw_migrate_barrier_acquire();
    assert_true(spw_migrate_barrier_quiesce(0));
    spw_migrate_barrier_resume();
    assert_true(spw_migrate_barrier_inside());
    spw_migrate_barrier_release();
    assert_false(spw_migrate_barrier_inside());
}

static _Atomic unsigned arrivals;

static void note_arrival(void)
{
    atomic_fetch_add(&arrivals, 1);
}

static void *ask_for_memory(void *cookie)
{
    spw_migrate_barrier_pass();
    atomic_store((_Atomic bool *)cookie, true);
    return NULL;
}

/* A pause holds it: requests for memory wait too, and the thread that holds it may close it again.
 */
static void test_hold(void **state)
{
    _Atomic bool passed = false;
    pthread_t thread;

    atomic_store(&arrivals, 0);
    spw_migrate_barrier_pass(); /* nobody holds it */
    assert_true(spw_migrate_barrier_hold(MS, note_arrival));
    assert_int_equal(pthread_create(&thread, NULL, ask_for_memory, &passed), 0);
    while (atomic_load(&arrivals) == 0) {
        usleep(100);
    }
    assert_true(spw_migrate_barrier_quiesce(0));
    spw_migrate_barrier_resume();
    spw_migrate_barrier_pass(); /* it is inside */
    usleep(10000);
    assert_false(atomic_load(&passed));
    spw_migrate_barrier_release_hold();
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(atomic_load(&passed));
    assert_false(spw_migrate_barrier_inside());
    assert_true(spw_migrate_barrier_quiesce(0));
    assert_false(spw_migrate_barrier_quiesce(0));
    assert_false(spw_migrate_barrier_hold(MS, note_arrival)); /* it stays closed too long */
    assert_int_equal(atomic_load(&spw_migrate_barrier.held), 0);
    spw_migrate_barrier_resume();
}

static _Atomic bool leaves;

static void *stay_inside(void *cookie)
{
    spw_migrate_barrier_acquire();
    atomic_store((_Atomic bool *)cookie, true);
    while (!atomic_load(&leaves)) {
        usleep(100);
    }
    spw_migrate_barrier_release();
    return NULL;
}

/* A thread stays inside: a pause waits no longer than it may, and then lets everybody go on. */
static void test_hold_in_vain(void **state)
{
    _Atomic bool inside = false, passed = false;
    pthread_t staying, asking;
    uint64_t begin;

    atomic_store(&leaves, false);
    assert_int_equal(pthread_create(&staying, NULL, stay_inside, &inside), 0);
    while (!atomic_load(&inside)) {
        usleep(100);
    }
    begin = spw_clock_ns();
    assert_int_equal(pthread_create(&asking, NULL, ask_for_memory, &passed), 0);
    assert_true(spw_migrate_barrier_hold(MS, note_arrival));
    assert_false(spw_migrate_barrier_claim(200 * MS));
    assert_true(spw_clock_ns() - begin < UINT64_C(10000) * MS);
    spw_migrate_barrier_release_hold();
    assert_int_equal(atomic_load(&spw_migrate_barrier.held), 0);
    assert_int_equal(atomic_load(&spw_migrate_barrier.closed), 0);
    assert_int_equal(pthread_join(asking, NULL), 0);
    assert_true(atomic_load(&passed));
    assert_false(spw_migrate_barrier_inside());
    atomic_store(&leaves, true);
    assert_int_equal(pthread_join(staying, NULL), 0);
}

/* From now on the system call answers EPERM in this process. */
static void deny_membarrier(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = 4, .filter = filter};

    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static void *pass_many_times(void *cookie)
{
    while (!atomic_load((_Atomic bool *)cookie)) {
        spw_migrate_barrier_acquire();
        spw_migrate_barrier_release();
    }
    return NULL;
}

/* A barrier that cannot be closed was closed for a moment: whoever waits since then goes on. */
static void test_denied_late(void **state)
{
    enum { TRIES = 300000, MOST_S = 60 };
    _Atomic bool ends = false;
    pthread_t threads[THREADS];
    int status;
    pid_t child;

    if (is_under_valgrind()) {
        skip(); /* it does not know seccomp, so membarrier would not be denied */
    }
    child = fork();
    if (child == 0) {
        (void)alarm(MOST_S);
        deny_membarrier();
        for (int i = 0; i < THREADS; i++) {
            if (pthread_create(&threads[i], NULL, pass_many_times, &ends) != 0) {
                _exit(2);
            }
        }
        for (int i = 0; i < TRIES; i++) {
            if (spw_migrate_barrier_quiesce(0)) {
                if (!atomic_load(&spw_thread_slots.fenced)) {
                    _exit(3);
                }
                spw_migrate_barrier_resume(); /* the first use found no membarrier: fences */
            }
        }
        atomic_store(&ends, true);
        for (int i = 0; i < THREADS; i++) {
            (void)pthread_join(threads[i], NULL);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

struct visitor {
    _Atomic int stage; /* 1: inside, 2: told to leave, 3: left */
    bool nested;
    bool dies; /* ends its thread inside the call */
    unsigned pause_us;
};

static void *visit(void *cookie)
{
    struct visitor *visitor = cookie;

    spw_migrate_barrier_acquire();
    atomic_store(&visitor->stage, 1);
    while (atomic_load(&visitor->stage) != 2) {
        usleep(visitor->pause_us);
    }
    if (visitor->nested) {
        spw_migrate_barrier_acquire();
        spw_migrate_barrier_release();
    }
    if (visitor->dies) {
        pthread_exit(NULL);
    }
    spw_migrate_barrier_release();
    atomic_store(&visitor->stage, 3);
    return NULL;
}

static void await(_Atomic int *stage, int wanted)
{
    while (atomic_load(stage) != wanted) {
        usleep(100);
    }
}

static void waits_for_a_thread(struct visitor visitor)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, visit, &visitor), 0);
    await(&visitor.stage, 1);
    assert_false(spw_migrate_barrier_quiesce(5 * MS));
    assert_int_equal(atomic_load(&spw_migrate_barrier.closed), 0);
    atomic_store(&visitor.stage, 2);
    pthread_join(thread, NULL);
    assert_true(spw_migrate_barrier_quiesce(0));
    spw_migrate_barrier_resume();
}

static void test_somebody_stays(void **state)
{
    waits_for_a_thread((struct visitor){.nested = true});
}

static void test_a_thread_that_dies(void **state)
{
    waits_for_a_thread((struct visitor){.dies = true});
}

/* A thread that closes it from inside a submission waits for those of the others. */
static void test_somebody_stays_beside_the_closer(void **state)
{
    spw_migrate_barrier_acquire();
    waits_for_a_thread((struct visitor){0});
    spw_migrate_barrier_release();
    assert_false(spw_migrate_barrier_inside());
}

/* A thread that is inside, and tries twice to close it. */
struct closer {
    _Atomic int stage; /* 1: inside, 2: told to try, 3: has tried */
    bool closed;
};

static void *close_from_inside(void *cookie)
{
    struct closer *closer = cookie;

    spw_migrate_barrier_acquire();
    atomic_store(&closer->stage, 1);
    for (int i = 0; i < 2; i++) {
        await(&closer->stage, 2);
        closer->closed = spw_migrate_barrier_quiesce(5 * MS);
        if (closer->closed) {
            spw_migrate_barrier_resume();
        }
        atomic_store(&closer->stage, 3);
    }
    spw_migrate_barrier_release();
    return NULL;
}

static bool can_close(struct closer *closer)
{
    atomic_store(&closer->stage, 2);
    await(&closer->stage, 3);
    return closer->closed;
}

static void start_visit(pthread_t *thread, struct visitor *visitor)
{
    assert_int_equal(pthread_create(thread, NULL, visit, visitor), 0);
    await(&visitor->stage, 1);
}

static void end_visit(pthread_t thread, struct visitor *visitor)
{
    atomic_store(&visitor->stage, 2);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* The same where all threads share a slot, as no other is left: one that leaves takes only itself
 * out of it. */
static void test_closer_shares_its_slot(void **state)
{
    struct visitor stays = {.pause_us = 100}, leaves_early = {.pause_us = 100};
    struct closer closer = {0};
    pthread_t threads[3];

    for (size_t i = 0; i < SPW_THREAD_SLOTS; i++) {
        atomic_store(&spw_thread_slots.slots[i].taken, true);
    }
    assert_int_equal(pthread_create(&threads[0], NULL, close_from_inside, &closer), 0);
    await(&closer.stage, 1);
    start_visit(&threads[1], &stays);
    start_visit(&threads[2], &leaves_early);
    end_visit(threads[2], &leaves_early);
    assert_int_equal(atomic_load(&spw_thread_slots.slots[SPW_THREAD_SLOTS - 1].submitting), 2);
    assert_false(can_close(&closer));
    end_visit(threads[1], &stays);
    assert_true(can_close(&closer));
    assert_int_equal(pthread_join(threads[0], NULL), 0);
    spw_thread_slots_reset();
}

/* A thread that is inside may submit again, or it would never leave. */
static void *close_barrier(void *cookie)
{
    bool *closed = cookie;

    *closed = spw_migrate_barrier_quiesce(2000u * MS);
    if (*closed) {
        spw_migrate_barrier_resume();
    }
    return NULL;
}

static void test_nested_passes_a_closed_gate(void **state)
{
    bool closed = false;
    pthread_t thread;

    spw_migrate_barrier_acquire();
    assert_int_equal(pthread_create(&thread, NULL, close_barrier, &closed), 0);
    while (atomic_load(&spw_migrate_barrier.closed) == 0) {
        usleep(100);
    }
    spw_migrate_barrier_acquire();
    spw_migrate_barrier_release();
    spw_migrate_barrier_release();
    pthread_join(thread, NULL);
    assert_true(closed);
}

static void *enter_once(void *cookie)
{
    struct visitor *visitor = cookie;

    atomic_store(&visitor->stage, 1);
    spw_migrate_barrier_acquire();
    spw_migrate_barrier_release();
    atomic_store(&visitor->stage, 3);
    return NULL;
}

static void test_others_wait(void **state)
{
    struct visitor visitor = {0};
    uint64_t before;
    pthread_t thread;

    assert_true(spw_migrate_barrier_quiesce(0));
    before = spw_migrate_barrier_submissions();
    assert_int_equal(pthread_create(&thread, NULL, enter_once, &visitor), 0);
    await(&visitor.stage, 1);
    usleep(20000);
    assert_int_equal(atomic_load(&visitor.stage), 1);
    assert_int_equal(spw_migrate_barrier_submissions(), before);
    spw_migrate_barrier_resume();
    pthread_join(thread, NULL);
    assert_int_equal(spw_migrate_barrier_submissions(), before + 1);
}

/* A migration that closes it for a moment is no pause: nobody is told of who waits. */
static void test_arrivals_after_a_hold(void **state)
{
    struct visitor visitor = {0};
    pthread_t thread;

    assert_true(spw_migrate_barrier_hold(MS, note_arrival));
    spw_migrate_barrier_release_hold();
    atomic_store(&arrivals, 0);
    assert_true(spw_migrate_barrier_quiesce(0));
    assert_int_equal(pthread_create(&thread, NULL, enter_once, &visitor), 0);
    await(&visitor.stage, 1);
    usleep(20000);
    assert_int_equal(atomic_load(&visitor.stage), 1);
    spw_migrate_barrier_resume();
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&arrivals), 0);
}

static _Atomic int shared_value;
static _Atomic bool stop;

static void *submit_always(void *cookie)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        spw_migrate_barrier_acquire();
        atomic_fetch_add_explicit(&shared_value, 1, memory_order_relaxed);
        spw_migrate_barrier_release();
    }
    return NULL;
}

/* While the barrier is closed no other thread is inside. */
static void test_nothing_happens_while_closed(void **state)
{
    pthread_t threads[THREADS];
    size_t closed = 0;

    atomic_store(&stop, false);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, submit_always, NULL), 0);
    }
    for (int i = 0; i < 300; i++) {
        int before;

        if (!spw_migrate_barrier_quiesce(200 * MS)) {
            continue;
        }
        closed++;
        before = atomic_load(&shared_value);
        usleep(20);
        assert_int_equal(atomic_load(&shared_value), before);
        spw_migrate_barrier_resume();
        usleep(50);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(closed > 250);
}

/* More threads than slots; slots are given back. */
static void test_crowd(void **state)
{
    static struct visitor visitors[CROWD];
    static pthread_t threads[CROWD];

    memset(visitors, 0, sizeof(visitors));
    for (int i = 0; i < CROWD; i++) {
        visitors[i].pause_us = 100000; /* more threads than processors */
        assert_int_equal(pthread_create(&threads[i], NULL, visit, &visitors[i]), 0);
    }
    for (int i = 0; i < CROWD; i++) {
        await(&visitors[i].stage, 1);
    }
    assert_false(spw_migrate_barrier_quiesce(MS));
    for (int i = 0; i < CROWD; i++) {
        atomic_store(&visitors[i].stage, 2);
    }
    for (int i = 0; i < CROWD; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(spw_migrate_barrier_quiesce(1000u * MS));
    spw_migrate_barrier_resume();
    for (int i = 0; i < SPW_THREAD_SLOTS; i++) {
        assert_int_equal(atomic_load(&spw_thread_slots.slots[i].submitting), 0);
        assert_false(i > 0 && atomic_load(&spw_thread_slots.slots[i].taken));
    }
}

static void test_fork(void **state)
{
    pid_t child;
    int status = -1;

    assert_true(spw_migrate_barrier_quiesce(0));
    child = fork();
    if (child == 0) {
        /* As in the child of a program whose other thread was migrating. */
        spw_migrate_barrier_depth = 0;
        spw_thread_slots_reset();
        spw_migrate_barrier_reset();
        spw_migrate_barrier_acquire();
        spw_migrate_barrier_release();
        spw_migrate_barrier_arm();
        _exit(spw_migrate_barrier_quiesce(0) ? 0 : 1);
    }
    spw_migrate_barrier_resume();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* The thread that forks holds the barrier, and has closed it again: the child starts anew. */
static void test_fork_in_a_pause(void **state)
{
    enum { MOST_S = 10 };
    pid_t child;
    int status = -1;

    assert_true(spw_migrate_barrier_hold(MS, note_arrival));
    assert_true(spw_migrate_barrier_quiesce(0));
    child = fork();
    if (child == 0) {
        (void)alarm(MOST_S);
        spw_migrate_barrier_depth = 0;
        spw_thread_slots_reset();
        spw_migrate_barrier_reset();
        spw_migrate_barrier_pass();
        if (!spw_migrate_barrier_quiesce(0) || spw_migrate_barrier_quiesce(0)) {
            _exit(1);
        }
        spw_migrate_barrier_resume();
        _exit(atomic_load(&spw_migrate_barrier.closed) == 0 ? 0 : 2);
    }
    spw_migrate_barrier_resume();
    spw_migrate_barrier_release_hold();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, setup), cmocka_unit_test_setup(name, setup_fenced)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_unarmed),
        TEST(test_counts),
        TEST(test_closer_passes),
        TEST(test_hold),
        TEST(test_hold_in_vain),
        TEST(test_denied_late),
        TEST(test_somebody_stays),
        TEST(test_a_thread_that_dies),
        TEST(test_somebody_stays_beside_the_closer),
        TEST(test_closer_shares_its_slot),
        TEST(test_nested_passes_a_closed_gate),
        TEST(test_others_wait),
        TEST(test_arrivals_after_a_hold),
        TEST(test_nothing_happens_while_closed),
        TEST(test_crowd),
        TEST(test_fork),
        TEST(test_fork_in_a_pause),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
