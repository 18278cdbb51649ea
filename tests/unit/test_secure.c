/* A program with more rights than its user has ignores all variables. The test makes itself such a
 * program: a copy that runs as another user. Only root can. */
#include "common/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { OTHER_USER = 65534, SKIPPED = 77, MARK = 42 };

static const char *self; /* the path of this program; under valgrind /proc/self/exe is another */

/* The exit status of a program, which is run with SPILLWAY_LIMIT. */
static int run(const char *path)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        (void)setenv("SPILLWAY_LIMIT", "1GiB", 1);
        (void)execl(path, path, "limit", (char *)NULL);
        _exit(SKIPPED);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Copies this program. False if it cannot be given to another user. */
static bool copy_for_other_user(char *folder, char *path, size_t capacity)
{
    char command[512];

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, capacity, "%s/copy", folder);
    (void)snprintf(command, sizeof(command), "cp %s %s", self, path);
    assert_int_equal(system(command), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    return chown(path, OTHER_USER, OTHER_USER) == 0 && chmod(path, 04755) == 0;
}

static void test_variables_are_ignored(void **state)
{
    char folder[] = "/tmp/spillway-test-XXXXXX", path[64];
    bool possible = copy_for_other_user(folder, path, sizeof(path));
    int status = possible ? run(path) : SKIPPED;

    (void)unlink(path);
    (void)rmdir(folder);
    assert_int_equal(run(self), MARK);
    if (status == SKIPPED) {
        print_message("skipped: needs root, and /tmp where programs may change their user\n");
        skip();
    }
    assert_int_equal(status, 0);
}

/* As the program that the test starts: MARK if the variable counts. */
static int report(void)
{
    bool set = spw_option_get(SPW_OPT_SPILLWAY_LIMIT, NULL, 0).set;

    if (set) {
        return getauxval(AT_SECURE) != 0 ? EXIT_FAILURE : MARK;
    }
    return getauxval(AT_SECURE) != 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_variables_are_ignored)};

    if (argc > 1) {
        _exit(report()); /* at exit LeakSanitizer would fail, which may not trace itself then */
    }
    self = argv[0];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
