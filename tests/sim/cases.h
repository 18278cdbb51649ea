/* Test cases that need an environment of their own, because the driver reads it once: the test
 * program runs itself with the case's name as argument. */
#pragma once

#include "check.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A case returns 0 when all is well; a list ends with a NULL name. */
struct test_case {
    const char *name;
    int (*run)(void);
};

/* In main(): whether this process is to run a case; its exit code. */
static inline bool is_case(int argc, char **argv, const struct test_case *cases, int *ret_result)
{
    if (argc != 2) {
        return false;
    }
    for (; cases->name != NULL; cases++) {
        if (strcmp(argv[1], cases->name) == 0) {
            *ret_result = cases->run();
            return true;
        }
    }
    return false;
}

/* Runs a case with NAME=VALUE settings (NULL at the end); its exit code, and its stderr. */
static inline int run_case(const char *name, char *ret_errors, size_t errors_size, ...)
{
    const char *setting;
    size_t used = 0;
    int pipe_ends[2], status = 0;
    va_list settings;
    ssize_t done;
    pid_t child;

    assert_int_equal(pipe(pipe_ends), 0);
    child = fork();
    if (child == 0) {
        dup2(pipe_ends[1], STDERR_FILENO);
        close(pipe_ends[0]);
        close(pipe_ends[1]);
        va_start(settings, errors_size);
        while ((setting = va_arg(settings, const char *)) != NULL) {
            putenv((char *)setting);
        }
        va_end(settings);
        execl("/proc/self/exe", "test", name, (char *)NULL);
        _exit(127);
    }
    close(pipe_ends[1]);
    while (used + 1 < errors_size &&
           (done = read(pipe_ends[0], ret_errors + used, errors_size - used - 1)) > 0) {
        used += (size_t)done;
    }
    ret_errors[used] = '\0';
    close(pipe_ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}
