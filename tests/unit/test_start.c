/* The folder in which a process started. The test starts itself anew in folders of its choice. */
#include "system/start.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char self[PATH_MAX];
static bool early;

/* Runs before the constructor of what is tested, as that of another library may. */
__attribute__((constructor(101))) static void ask_early(void)
{
    char found[PATH_MAX];

    early = spw_start_folder() != NULL && spw_start_path("a", found, sizeof(found));
}

/* The exit status of this program, started with `question` in a folder; `gone`: one that is
 * removed before. */
static int ask_in(const char *question, bool gone)
{
    char folder[] = "/tmp/spillway-start-XXXXXX";
    int status;
    pid_t pid;

    assert_non_null(mkdtemp(folder));
    pid = fork();
    if (pid == 0) {
        if (chdir(folder) == 0 && (!gone || rmdir(folder) == 0)) {
            (void)execl(self, self, question, folder, (char *)NULL);
        }
        _exit(EXIT_FAILURE);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)rmdir(folder);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool leads_to(const char *path, const char *expected)
{
    char found[PATH_MAX];

    return spw_start_path(path, found, sizeof(found)) && strcmp(found, expected) == 0;
}

/* As the program in its folder, which it leaves. */
static bool answer(const char *question, const char *folder)
{
    char expected[PATH_MAX], found[PATH_MAX] = "x", small[8];

    if (chdir("/") != 0) {
        return false;
    }
    if (strcmp(question, "gone") == 0) {
        return spw_start_folder() == NULL && !spw_start_path("a", found, sizeof(found)) &&
               found[0] == '\0' && leads_to("/a", "/a");
    }
    (void)snprintf(expected, sizeof(expected), "%s/a/b", folder);
    return early && strcmp(spw_start_folder(), folder) == 0 && leads_to("a/b", expected) &&
           leads_to("/a", "/a") && !spw_start_path("a", small, sizeof(small)) &&
           !spw_start_path("/2345678", small, sizeof(small)) &&
           spw_start_path("/234567", small, sizeof(small));
}

static void test_folder(void **state)
{
    assert_int_equal(ask_in("left", false), EXIT_SUCCESS);
    assert_int_equal(ask_in("gone", true), EXIT_SUCCESS);
}

/* Of this program and of the C library. */
static void test_objects(void **state)
{
    char found[PATH_MAX], *end;

    assert_non_null(spw_start_own_folder(found));
    end = strrchr(self, '/');
    assert_int_equal(strlen(found), end - self);
    assert_memory_equal(found, self, end - self);
    assert_true(spw_start_object((const void *)(uintptr_t)strtol, found));
    assert_int_equal(found[0], '/');
    assert_false(spw_start_object(found, found)); /* the stack */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_objects),
    };

    if (argc > 2) {
        _exit(answer(argv[1], argv[2]) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    (void)spw_start_path(argv[0], self, sizeof(self));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
