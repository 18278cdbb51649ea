/* A process whose files may not be as large as spillway would have them. */
#include "system/fd.h"
#include "stats/stats.h"

#include "child.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

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

/* At a place in a file, at its end when it is appended to, and where nothing limits. */
static void write_at_the_limit(void)
{
    const struct rlimit limit = {8, 8};
    FILE *file = tmpfile();
    int ends[2];

    CHECK(file != NULL && pipe(ends) == 0 && setrlimit(RLIMIT_FSIZE, &limit) == 0);
    (void)signal(SIGXFSZ, SIG_DFL);
    CHECK(spw_fd_write(fileno(file), "12345", 5) && spw_fd_write(ends[1], "123456789", 9));
    CHECK(!spw_fd_write(fileno(file), "6789", 4) && errno == EFBIG);
    CHECK(spw_fd_write(fileno(file), "678", 3));
    CHECK(lseek(fileno(file), 0, SEEK_SET) == 0 && spw_fd_write(fileno(file), "1", 1));
    CHECK(fcntl(fileno(file), F_SETFL, O_APPEND) == 0);
    CHECK(!spw_fd_write(fileno(file), "9", 1) && errno == EFBIG);
}

static void test_writes(void **state)
{
    in_child(write_at_the_limit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_limit),
        cmocka_unit_test(test_writes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
