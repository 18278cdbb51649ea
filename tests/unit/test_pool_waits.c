/* Threads that wait for memory: one waits for the device, the others for that thread. */
#include "pool_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WAITERS = 3, EACH = 2, PATIENCE_S = 20 };

struct waiter {
    struct pool_fixture *fixture;
    pthread_t thread;
    _Atomic int tid;
    uint64_t address; /* 0: none */
};

static void *wait_for_memory(void *argument)
{
    struct waiter *waiter = argument;

    waiter->tid = (int)syscall(SYS_gettid);
    if (pool_try(waiter->fixture->pool, EACH * GRANULE, NULL, NULL, &waiter->address) != SPW_OK) {
        waiter->address = 0;
    }
    return NULL;
}

static void start(struct pool_fixture *f, struct waiter *waiter)
{
    *waiter = (struct waiter){.fixture = f};
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_memory, waiter), 0);
}

/* Waits until a thread sleeps: there is nothing to sleep on but the pool. */
static void await_sleep(const struct waiter *waiter)
{
    const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
    char path[64], state = 'R';

    for (int i = 0; i < 400 && state != 'S'; i++) {
        FILE *file;

        nanosleep(&pause, NULL);
        (void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", waiter->tid);
        file = fopen(path, "re");
        if (file != NULL) {
            (void)fscanf(file, "%*d (%*[^)]) %c", &state);
            (void)fclose(file);
        }
    }
}

/* Ends the test at once when a thread is not woken up. */
static void join(struct waiter *waiter)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_S;
    assert_int_equal(pthread_timedjoin_np(waiter->thread, NULL, &end), 0);
}

/* All threads go on when the one that waits for the device comes back, and get what they asked
 * for. */
static void test_all_are_woken(void **state)
{
    static struct pool_fixture f;
    static struct waiter waiters[WAITERS];

    pool_open_small(&f, 64, WAITERS * EACH, 0);
    pool_free(&f, pool_alloc(&f, WAITERS * EACH * GRANULE, &stream_a), &stream_a);
    fake_vm_hold_waits(&f.vm, true);
    start(&f, &waiters[0]);
    fake_vm_await_waiter(&f.vm);
    for (int i = 1; i < WAITERS; i++) {
        start(&f, &waiters[i]);
        await_sleep(&waiters[i]);
    }
    assert_int_equal(f.vm.calls[FAKE_WAIT_HOST] + f.vm.calls[FAKE_WAIT_SOON], 1);
    fake_vm_hold_waits(&f.vm, false);
    for (int i = 0; i < WAITERS; i++) {
        join(&waiters[i]);
        assert_int_not_equal(waiters[i].address, 0);
    }
    pool_close(&f);
}

/* Nobody waits for a thread that came back earlier. */
static void test_none_is_awaited(void **state)
{
    static struct pool_fixture f;
    static struct waiter first, second;

    pool_open_small(&f, 64, 3 * EACH, 0);
    f.vm.most_chunks = EACH;
    pool_free(&f, pool_alloc(&f, EACH * GRANULE, &stream_a), &stream_a);
    start(&f, &first); /* waits for the free */
    join(&first);
    assert_int_not_equal(first.address, 0);
    assert_int_equal(spw_counter_get(&f.counters.host_waits), 1);
    start(&f, &second); /* the device has no more, and nothing is pending */
    join(&second);
    assert_int_equal(second.address, 0);
    pool_close(&f);
}

enum { RULE = 4 };

struct limited {
    struct pool_fixture f;
    struct spw_account accounts[SPW_ACCOUNTS];
    enum spw_err err;
};

static enum spw_err try_limited(struct limited *l, const struct spw_stream *stream)
{
    const struct spw_pool_placement placement = {.limit_bytes = RULE * GRANULE, .account = 1};
    const struct spw_request request = {
        .bytes = RULE * GRANULE, .stream = stream, .placement = &placement};
    struct spw_result result;

    return spw_pool_alloc(l->f.pool, &request, &result);
}

static void *wait_for_limited(void *argument)
{
    struct limited *l = argument;

    l->err = try_limited(l, NULL);
    return NULL;
}

/* The limit of a rule holds also when another thread used it up during a wait. What was found goes
 * back. */
static void test_limit_of_a_rule(void **state)
{
    static struct limited l;
    pthread_t thread;

    pool_open_as(&l.f, &(struct spw_pool_config){.granule_bytes = GRANULE,
                                                 .arena_bytes = 256ull * GRANULE,
                                                 .limit_bytes = 2ull * RULE * GRANULE,
                                                 .accounts = l.accounts});
    pool_free(&l.f, pool_alloc(&l.f, 2 * RULE * GRANULE, &stream_a), &stream_a);
    fake_vm_hold_waits(&l.f.vm, true);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_limited, &l), 0);
    fake_vm_await_waiter(&l.f.vm);
    assert_int_equal(try_limited(&l, &stream_a), SPW_OK);
    fake_vm_hold_waits(&l.f.vm, false);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(l.err, SPW_E_QUOTA);
    assert_int_equal(spw_counter_get(&l.accounts[0].live), RULE * GRANULE);
    assert_int_equal(spw_counter_get(&l.f.counters.live_bytes), RULE * GRANULE);
    pool_check(&l.f);
    assert_int_not_equal(pool_alloc(&l.f, RULE * GRANULE, &stream_b), 0);
    pool_close(&l.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_woken),
        cmocka_unit_test(test_none_is_awaited),
        cmocka_unit_test(test_limit_of_a_rule),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
