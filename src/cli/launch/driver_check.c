#include "cli/launch/child.h"

#include "driver/host_place.h"
#include "driver/host_rights.h"
#include "driver/one_memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REASON_BYTES = 1024 };

/* The findings of the child, which it shares with the launcher. */
struct findings {
    char reason[REASON_BYTES]; /* why the driver does not work; "": it does */
    struct spw_cli_card card;
};

/* The total memory of the first device, if it has none of its own; otherwise 0. */
static uint64_t ask_one_memory(void *driver)
{
    __typeof__(cuDeviceGetAttribute) *attribute;
    __typeof__(cuDeviceTotalMem_v2) *total_of;

    *(void **)&attribute = dlsym(driver, "cuDeviceGetAttribute");
    *(void **)&total_of = dlsym(driver, "cuDeviceTotalMem_v2");
    return attribute != NULL && total_of != NULL ? spw_driver_one_memory_of(attribute, total_of, 0)
                                                 : 0;
}

static bool is_wsl(void *driver)
{
    bool simulated = dlsym(driver, "spillway_sim_version") != NULL;
    struct spw_host_rights rights;

    spw_driver_host_rights_below(spw_driver_host_root(simulated), &rights);
    return rights.wsl;
}

/* Writes the name and the memory of the first device that the program sees, if there is one. */
static void name_card(void *driver, char text[SPW_CLI_CARD])
{
    int (*get)(int *ret_device, int ordinal);
    int (*get_name)(char *name, int length, int device);
    int (*get_bytes)(size_t * ret_bytes, int device);
    char name[SPW_CLI_CARD / 2] = "";
    size_t bytes;
    int device;

    *(void **)&get = dlsym(driver, "cuDeviceGet");
    *(void **)&get_name = dlsym(driver, "cuDeviceGetName");
    *(void **)&get_bytes = dlsym(driver, "cuDeviceTotalMem_v2");
    if (get != NULL && get_name != NULL && get_bytes != NULL && get(&device, 0) == 0 &&
        get_name(name, sizeof(name) - 1, device) == 0 && get_bytes(&bytes, device) == 0) {
        (void)snprintf(text, SPW_CLI_CARD, "%s, %zu MiB", name, bytes >> 20);
    }
}

static void try_driver(FILE *reason, struct spw_cli_card *card)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*initialise)(unsigned flags);
    int (*error_name)(int result, const char **ret_name);
    const char *name = "?";
    int result;

    if (driver == NULL) {
        fprintf(reason, "no CUDA driver (%s)", dlerror());
        return;
    }
    *(void **)&initialise = dlsym(driver, "cuInit");
    *(void **)&error_name = dlsym(driver, "cuGetErrorName");
    if (initialise == NULL || error_name == NULL) {
        fprintf(reason, "libcuda.so.1 is no CUDA driver");
        return;
    }
    result = initialise(0);
    if (result != 0) {
        error_name(result, &name);
        fprintf(reason, "the CUDA driver does not start (cuInit: %s)", name);
        return;
    }
    card->one_memory = ask_one_memory(driver);
    card->wsl = is_wsl(driver);
    name_card(driver, card->text);
}

static void run_child(struct findings *findings)
{
    FILE *stream = fmemopen(findings->reason, REASON_BYTES, "w");

    setenv("SPILLWAY", "off", 1); /* this command may run under spillway itself */
    if (stream != NULL) {
        try_driver(stream, &findings->card);
        fflush(stream);
    }
    _exit(0);
}

static bool judge(pid_t pid, const struct findings *findings, char *reason, size_t capacity)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        continue;
    }
    if (WIFSIGNALED(status)) {
        snprintf(reason, capacity, "the CUDA driver crashes (%s)", strsignal(WTERMSIG(status)));
        return false;
    }
    snprintf(reason, capacity, "%s", findings->reason);
    return findings->reason[0] == '\0';
}

bool spw_cli_driver_check(char *reason, size_t capacity, struct spw_cli_card *ret_card)
{
    struct findings *findings = spw_cli_shared_map(sizeof(*findings));
    pid_t pid = findings != NULL ? fork() : -1;
    bool works;

    *ret_card = (struct spw_cli_card){0};
    if (pid == 0) {
        run_child(findings);
    }
    if (pid < 0) {
        snprintf(reason, capacity, "cannot start a process (%s)", strerror(errno));
    }
    works = pid > 0 && judge(pid, findings, reason, capacity);
    if (works) {
        *ret_card = findings->card;
    }
    spw_cli_shared_unmap(findings, sizeof(*findings));
    return works;
}
