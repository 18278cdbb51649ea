#include "cli/launch/child.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPORT_BYTES = 1024 };

static void try_driver(FILE *report)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*initialise)(unsigned flags);
    int (*error_name)(int result, const char **ret_name);
    const char *name = "?";
    int result;

    if (driver == NULL) {
        fprintf(report, "no CUDA driver (%s)", dlerror());
        return;
    }
    *(void **)&initialise = dlsym(driver, "cuInit");
    *(void **)&error_name = dlsym(driver, "cuGetErrorName");
    if (initialise == NULL || error_name == NULL) {
        fprintf(report, "libcuda.so.1 is no CUDA driver");
        return;
    }
    result = initialise(0);
    if (result != 0) {
        error_name(result, &name);
        fprintf(report, "the CUDA driver does not start (cuInit: %s)", name);
    }
}

/* Writes the reason to `report`, which has REPORT_BYTES and is shared with the launcher. */
static void run_child(char *report)
{
    FILE *stream = fmemopen(report, REPORT_BYTES, "w");

    setenv("SPILLWAY", "off", 1); /* this command may run under spillway itself */
    if (stream != NULL) {
        try_driver(stream);
        fflush(stream);
    }
    _exit(0);
}

static bool judge(pid_t pid, const char *report, char *reason, size_t capacity)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        continue;
    }
    if (WIFSIGNALED(status)) {
        snprintf(reason, capacity, "the CUDA driver crashes (%s)", strsignal(WTERMSIG(status)));
        return false;
    }
    snprintf(reason, capacity, "%s", report);
    return *report == '\0';
}

bool spw_cli_driver_check(char *reason, size_t capacity)
{
    char *report = spw_cli_shared_map(REPORT_BYTES);
    pid_t pid = report != NULL ? fork() : -1;
    bool works;

    if (pid == 0) {
        run_child(report);
    }
    if (pid < 0) {
        snprintf(reason, capacity, "cannot start a process (%s)", strerror(errno));
    }
    works = pid > 0 && judge(pid, report, reason, capacity);
    spw_cli_shared_unmap(report, REPORT_BYTES);
    return works;
}
