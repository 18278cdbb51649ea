/* Statistics of a process that may have no file as large as they are. */
#include "stats/stats.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The kernel would end the child with SIGXFSZ when a file grows beyond the limit. */
static void test_small_limit(void **state)
{
    const struct rlimit limit = {4096, 4096};
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        (void)signal(SIGXFSZ, SIG_DFL);
        _exit(setrlimit(RLIMIT_FSIZE, &limit) == 0 && spw_stats_create() != NULL ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
