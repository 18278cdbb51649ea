#include "cli/launch/preload.h"

#include "cli/launch/installation.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The libraries, in the order of LD_PRELOAD. */
enum { POOL, DRIVER, RUNTIME, LIBRARY_COUNT };

static const char *const libraries[LIBRARY_COUNT] = {
    [POOL] = "libspillway.so",
    [DRIVER] = "sim/libcuda.so.1",
    [RUNTIME] = ("sim/" SPW_SIM_RUNTIME),
};

/* Simulated NVIDIA libraries of CUDA 13 and 12, in the driver's folder. Each is built only if its
 * header is found. A program finds those of its version by their names, and the functions in them
 * by the versions of their symbols. */
static const char *const shims[] = {
    "libcudart.so.12",   "libcublas.so.13", "libcublasLt.so.13", "libcufft.so.12",
    "libcusolver.so.12", "libcublas.so.12", "libcublasLt.so.12", "libcufft.so.11",
    "libcusolver.so.11", "libcudnn.so.9",   "libnccl.so.2",      "libcusparse.so.12",
};

#define SHIM_COUNT (sizeof(shims) / sizeof(*shims))

static size_t find_shims(const char *folder, char ret_paths[SHIM_COUNT][PATH_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < SHIM_COUNT; i++) {
        int length = snprintf(ret_paths[count], PATH_MAX, "%s/%s", folder, shims[i]);

        count += length < PATH_MAX && strcmp(shims[i], SPW_SIM_RUNTIME) != 0 &&
                 access(ret_paths[count], R_OK) == 0;
    }
    return count;
}

/* Preloads all libraries, because LD_PRELOAD takes precedence over the program's RPATH. */
bool spw_cli_sim_libraries_select(const char *command, bool with_pool)
{
    static char paths[LIBRARY_COUNT][PATH_MAX];
    static char shim_paths[SHIM_COUNT][PATH_MAX];
    const char *list[LIBRARY_COUNT + SHIM_COUNT];
    size_t count = 0;
    size_t shim_count;
    const char *present = getenv("LD_LIBRARY_PATH");
    char *search;
    static char folder[PATH_MAX];

    for (int i = with_pool ? POOL : DRIVER; i < LIBRARY_COUNT; i++) {
        if (!spw_cli_installation_find(command, libraries[i], paths[i])) {
            return false;
        }
        list[count++] = paths[i];
    }
    strcpy(folder, paths[DRIVER]);
    dirname(folder);
    shim_count = find_shims(folder, shim_paths);
    for (size_t i = 0; i < shim_count; i++) {
        list[count++] = shim_paths[i];
    }
    spw_cli_preload_add(list, count);
    if (present == NULL || *present == '\0') {
        setenv("LD_LIBRARY_PATH", folder, 1);
    } else if (asprintf(&search, "%s:%s", folder, present) >= 0) {
        setenv("LD_LIBRARY_PATH", search, 1);
        free(search);
    }
    return true;
}
