#include "sim/driver/api/loaded_libs.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>

#include "common/path.h"
#include "sim/driver/code/unpack.h"
#include "sim/driver/core/lock.h"
#include "sim/driver/core/run_record.h"
#include "sim/driver/core/say.h"
#include "system/demangle.h"

#define CUDA_MAJOR (CUDA_VERSION / 1000)

static pid_t own_pid;          /* the process that loaded the driver, not its forks */
static _Atomic(bool) was_used; /* cuInit was called */

/* The major version of a file libcudart.so.N or, in wheels, libcudart-HASH.so.N.M; otherwise 0. */
static int runtime_version(const char *path)
{
    const char *name = spw_path_name(path);
    const char *suffix = strstr(name, ".so.");

    return strncmp(name, "libcudart", strlen("libcudart")) == 0 && suffix != NULL
               ? atoi(suffix + strlen(".so."))
               : 0;
}

/* The simulated runtimes of other versions of CUDA are in the driver's folder. */
static bool is_beside_driver(const char *path)
{
    size_t folder = (size_t)(spw_path_name(path) - path);
    Dl_info driver;

    return dladdr(&own_pid, &driver) != 0 &&
           (size_t)(spw_path_name(driver.dli_fname) - driver.dli_fname) == folder &&
           strncmp(path, driver.dli_fname, folder) == 0;
}

static int find_foreign_runtime(struct dl_phdr_info *object, size_t size, void *ret_path)
{
    int version = runtime_version(object->dlpi_name);

    if (version == 0 || version == CUDA_MAJOR || is_beside_driver(object->dlpi_name)) {
        return 0;
    }
    snprintf(ret_path, FILENAME_MAX, "%s", object->dlpi_name);
    return 1;
}

void sim_loaded_libs_check(enum sim_fn fn)
{
    static _Atomic(bool) looked, said;
    char path[FILENAME_MAX];

    /* A runtime looks up functions before it calls cuInit, and may fail before it calls cuInit. */
    if (fn == SIM_FN_cuGetProcAddress || fn == SIM_FN_cuGetProcAddress_v2) {
        if (atomic_exchange(&looked, true)) {
            return;
        }
    } else if (fn == SIM_FN_cuInit) {
        was_used = true;
        (void)spw_demangle_find(/* load */ false);
        sim_unpack_start();
    } else {
        return;
    }
    if (dl_iterate_phdr(find_foreign_runtime, path) == 0 || atomic_exchange(&said, true)) {
        return;
    }
    sim_say(
        "the program has loaded %s, of CUDA %d, which works only with NVIDIA's "
        "driver; use a program (a PyTorch) built for CUDA %d, or a spillway built with headers of "
        "that one (docs/guide/simulator.md)",
        path, runtime_version(path), CUDA_MAJOR);
}

void sim_loaded_libs_refused(const void *caller)
{
    static _Atomic(bool) said;
    const char *name;
    Dl_info info;

    if (dladdr(caller, &info) == 0 || info.dli_fname == NULL || atomic_exchange(&said, true)) {
        return;
    }
    name = spw_path_name(info.dli_fname);
    sim_lock();
    sim_run_record_runtime(info.dli_fname);
    sim_unlock();
    sim_say("NVIDIA's CUDA runtime in %s works only with NVIDIA's driver: its calls fail (801). %s",
            info.dli_fname,
            strncmp(name, "libcudart.so", strlen("libcudart.so")) == 0
                ? "Start the program with spillway sim, which brings a runtime of its own"
                : "Link it with -cudart shared, or run it on a GPU");
}

struct torch {
    char cpu[FILENAME_MAX]; /* the path of libtorch_cpu; "" if it is not loaded */
    bool has_cuda;
};

static int find_torch(struct dl_phdr_info *object, size_t size, void *context)
{
    const char *name = spw_path_name(object->dlpi_name);
    struct torch *torch = context;

    if (strcmp(name, "libtorch_cpu.so") == 0) {
        snprintf(torch->cpu, sizeof(torch->cpu), "%s", object->dlpi_name);
    }
    torch->has_cuda |= strcmp(name, "libtorch_cuda.so") == 0 || strcmp(name, "libc10_cuda.so") == 0;
    return 0;
}

__attribute__((constructor)) static void note_process(void)
{
    own_pid = getpid();
}

/* A PyTorch without CUDA runs entirely on the host. Only this line informs the user. */
__attribute__((destructor)) static void look_back(void)
{
    struct torch torch = {.cpu = ""};

    if (was_used || getpid() != own_pid) {
        return;
    }
    (void)dl_iterate_phdr(find_torch, &torch);
    if (torch.cpu[0] != '\0' && !torch.has_cuda) {
        sim_say("this PyTorch is built without CUDA (%s, and no libtorch_cuda.so), so "
                "the simulated GPU was not used; use a PyTorch built for CUDA %d",
                torch.cpu, CUDA_MAJOR);
    }
}
