#include "cli/launch/driver_check.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Writes the reason when the driver does not work, else nothing. */
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

static void run_child(int report)
{
    FILE *stream = fdopen(report, "w");

    setenv("SPILLWAY", "off", 1); /* this command may run under spillway itself */
    if (stream != NULL) {
        try_driver(stream);
        fflush(stream);
    }
    _exit(0);
}

static size_t read_all(int fd, char *text, size_t capacity)
{
    size_t used = 0;
    ssize_t length;

    while ((length = read(fd, text + used, capacity - 1 - used)) != 0) {
        if (length < 0 && errno != EINTR) {
            break;
        }
        used += length > 0 ? (size_t)length : 0;
    }
    text[used] = '\0';
    return used;
}

bool spw_cli_driver_check(char *reason, size_t capacity)
{
    int report[2];
    int status = 0;
    size_t length;
    pid_t pid;

    if (pipe2(report, O_CLOEXEC) != 0 || (pid = fork()) < 0) {
        snprintf(reason, capacity, "cannot start a process (%s)", strerror(errno));
        return false;
    }
    if (pid == 0) {
        run_child(report[1]);
    }
    close(report[1]);
    length = read_all(report[0], reason, capacity);
    close(report[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        continue;
    }
    if (WIFSIGNALED(status)) {
        snprintf(reason, capacity, "the CUDA driver crashes (%s)", strsignal(WTERMSIG(status)));
        return false;
    }
    return length == 0;
}
