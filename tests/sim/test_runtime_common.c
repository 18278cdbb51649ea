#include "test_runtime_common.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

void *driver_symbol(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    assert_non_null(library);
    void *address = dlsym(library, name);
    assert_non_null(address);
    return address;
}

unsigned long long calls(const char *name)
{
    unsigned long long (*count)(const char *);

    *(void **)&count = driver_symbol("spillway_sim_calls");
    return count(name);
}

bool primary_is_active(int ordinal)
{
    PFN_cuDevicePrimaryCtxGetState_v7000 state;
    unsigned int flags;
    int active;

    *(void **)&state = driver_symbol("cuDevicePrimaryCtxGetState");
    assert_int_equal(state(ordinal, &flags, &active), CUDA_SUCCESS);
    return active != 0;
}

static int run_in_child(const struct CMUnitTest *test)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        const struct CMUnitTest group[] = {*test};
        exit(cmocka_run_group_tests_name(test->name, group, NULL, NULL));
    }
    if (waitpid(child, &status, 0) != child) {
        return 1;
    }
    if (WIFSIGNALED(status)) {
        (void)fprintf(stderr, "%s: died of signal %d\n", test->name, WTERMSIG(status));
        return 1;
    }
    return WEXITSTATUS(status) != 0;
}

int run_cases(const struct CMUnitTest *cases, size_t count, const char *only)
{
    int failed = 0;

    for (size_t i = 0; i < count; i++) {
        if (only == NULL || strcmp(only, cases[i].name) == 0) {
            failed += run_in_child(&cases[i]);
        }
    }
    (void)fprintf(stderr, "%d of %zu cases failed\n", failed, count);
    return failed;
}
