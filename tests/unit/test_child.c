/* Helper processes, started from a program that must not notice them. */
#include "system/child.h"

#include "system/start.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const uint64_t long_ns = UINT64_C(20) * 1000 * 1000 * 1000;
static const uint64_t short_ns = UINT64_C(200) * 1000 * 1000;

static volatile sig_atomic_t signals, forks;

static void count_signal(int number)
{
    signals++;
}

static void count_fork(void)
{
    forks++;
}

static struct spw_child_result shell(const char *script, uint64_t limit_ns)
{
    const char *arguments[] = {"/bin/sh", "-c", script, NULL};
    struct spw_child_result result;

    spw_child_run(arguments, limit_ns, &result);
    return result;
}

static void test_ends(void **state)
{
    struct spw_child_result result = shell("echo one; echo two; exit 3", long_ns);

    assert_int_equal(result.end, SPW_CHILD_EXITED);
    assert_int_equal(result.code, 3);
    assert_string_equal(result.said, "one");
    result = shell("kill -SEGV $$", long_ns);
    assert_int_equal(result.end, SPW_CHILD_KILLED);
    assert_int_equal(result.code, SIGSEGV);
    result = shell("sleep 60 & sleep 60", short_ns);
    assert_int_equal(result.end, SPW_CHILD_TIMED_OUT);
    spw_child_run((const char *[]){"/nowhere", NULL}, long_ns, &result);
    assert_int_equal(result.end, SPW_CHILD_NOT_STARTED);
}

/* The memory that the helper's stack was in can be anything afterwards. Only a build with
 * AddressSanitizer could tell that it is not. */
static void test_memory_afterwards(void **state)
{
    enum { PIECES = 32, BYTES = 64 << 10 };
    char *pieces[PIECES];

    assert_int_equal(shell("exit 0", long_ns).end, SPW_CHILD_EXITED);
    for (int i = 0; i < PIECES; i++) {
        pieces[i] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(pieces[i] != MAP_FAILED);
        memset(pieces[i], 1, BYTES);
    }
    for (int i = 0; i < PIECES; i++) {
        assert_int_equal(munmap(pieces[i], BYTES), 0);
    }
}

/* The driver's settings arrive as they were, the user's preloaded libraries do not. */
static void test_environment(void **state)
{
    struct spw_child_result result;

    setenv("CUDA_VISIBLE_DEVICES", "4", 1);
    result = shell("echo $CUDA_VISIBLE_DEVICES,$LD_PRELOAD,$SPILLWAY_LIMIT,$SPILLWAY_SIM_LOG,"
                   "$SPILLWAY_SIM_MEMORY,$CUDA_INJECTION64_PATH",
                   long_ns);
    assert_string_equal(result.said, "3,,,,1GiB,");
}

static void test_program_does_not_notice(void **state)
{
    sigset_t mask;

    signals = forks = 0;
    (void)shell("exit 0", long_ns);
    (void)shell("kill -KILL $$", long_ns);
    assert_int_equal(signals, 0);
    assert_int_equal(forks, 0);
    assert_int_equal(waitpid(-1, NULL, 0), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(waitpid(-1, NULL, __WALL), -1);
    assert_int_equal(errno, ECHILD);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM));
}

/* A handler of the program stays its handler. */
static void test_handlers_stay(void **state)
{
    (void)shell("exit 0", long_ns);
    (void)raise(SIGUSR1);
    assert_int_equal(signals, 1);
}

int main(void)
{
    const struct sigaction action = {.sa_handler = count_signal};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),          cmocka_unit_test(test_memory_afterwards),
        cmocka_unit_test(test_environment),   cmocka_unit_test(test_program_does_not_notice),
        cmocka_unit_test(test_handlers_stay),
    };

    (void)sigaction(SIGCHLD, &action, NULL);
    (void)sigaction(SIGUSR1, &action, NULL);
    (void)pthread_atfork(count_fork, count_fork, count_fork);
    setenv("CUDA_VISIBLE_DEVICES", "3", 1);
    setenv("CUDA_INJECTION64_PATH", "/profiler", 1);
    setenv("LD_PRELOAD", "/nothing.so", 1);
    setenv("SPILLWAY_LIMIT", "1GiB", 1);
    setenv("SPILLWAY_SIM_LOG", "log", 1);
    setenv("SPILLWAY_SIM_MEMORY", "1GiB", 1);
    spw_start_keep_environment();
    spw_start_keep_environment();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
