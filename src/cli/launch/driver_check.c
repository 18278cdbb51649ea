#include "cli/launch/child.h"

#include "driver/one_memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REASON_BYTES = 1024 };

/* The findings of the child. */
struct report {
    char reason[REASON_BYTES]; /* "": the driver works */
    uint64_t one_memory;
};

/* Returns the total memory of the first device, if it has none of its own; otherwise 0. */
static uint64_t ask_one_memory(void *driver)
{
    __typeof__(cuDeviceGetAttribute) *attribute;
    __typeof__(cuDeviceTotalMem_v2) *total_of;

    *(void **)&attribute = dlsym(driver, "cuDeviceGetAttribute");
    *(void **)&total_of = dlsym(driver, "cuDeviceTotalMem_v2");
    return attribute != NULL && total_of != NULL ? spw_driver_one_memory_of(attribute, total_of, 0)
                                                 : 0;
}

static void try_driver(FILE *report, uint64_t *ret_one_memory)
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
        return;
    }
    *ret_one_memory = ask_one_memory(driver);
}

/* `report` is shared with the launcher. */
static void run_child(struct report *report)
{
    FILE *stream = fmemopen(report->reason, REASON_BYTES, "w");

    setenv("SPILLWAY", "off", 1); /* this command may run under spillway itself */
    if (stream != NULL) {
        try_driver(stream, &report->one_memory);
        fflush(stream);
    }
    _exit(0);
}

static bool judge(pid_t pid, const struct report *report, char *reason, size_t capacity,
                  uint64_t *ret_one_memory)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        continue;
    }
    if (WIFSIGNALED(status)) {
        snprintf(reason, capacity, "the CUDA driver crashes (%s)", strsignal(WTERMSIG(status)));
        return false;
    }
    snprintf(reason, capacity, "%s", report->reason);
    *ret_one_memory = report->one_memory;
    return report->reason[0] == '\0';
}

bool spw_cli_driver_check(char *reason, size_t capacity, uint64_t *ret_one_memory)
{
    struct report *report = spw_cli_shared_map(sizeof(*report));
    pid_t pid = report != NULL ? fork() : -1;
    bool works;

    *ret_one_memory = 0;
    if (pid == 0) {
        run_child(report);
    }
    if (pid < 0) {
        snprintf(reason, capacity, "cannot start a process (%s)", strerror(errno));
    }
    works = pid > 0 && judge(pid, report, reason, capacity, ret_one_memory);
    spw_cli_shared_unmap(report, sizeof(*report));
    return works;
}
