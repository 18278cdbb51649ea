#include "system/start.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KEPT_BYTES = 32 << 10, KEPT = 256 };

static struct {
    _Atomic bool has_folder; /* the folder was read */
    char folder[PATH_MAX];   /* "": not known */
    bool has_variables;
    char text[KEPT_BYTES];     /* of the variables */
    char *variables[KEPT + 1]; /* NULL-terminated */
} start;

/* ---- the folder ---- */

/* Another library's constructor may use CUDA before this constructor runs, so spw_start_folder
 * calls this function as well. The C library's getcwd would allocate memory. The kernel's getcwd
 * returns a path that is not absolute if the folder is out of reach. */
__attribute__((constructor)) static void note_folder(void)
{
    if (atomic_load_explicit(&start.has_folder, memory_order_acquire)) {
        return;
    }
    if (syscall(SYS_getcwd, start.folder, sizeof(start.folder)) <= 0 || start.folder[0] != '/') {
        start.folder[0] = '\0';
    }
    atomic_store_explicit(&start.has_folder, true, memory_order_release);
}

const char *spw_start_folder(void)
{
    note_folder();
    return start.folder[0] != '\0' ? start.folder : NULL;
}

bool spw_start_path(const char *path, char *ret_path, size_t capacity)
{
    const char *below = spw_start_folder();
    int length = -1;

    if (*path == '/') {
        length = snprintf(ret_path, capacity, "%s", path);
    } else if (below != NULL) {
        length = snprintf(ret_path, capacity, "%s/%s", below[1] != '\0' ? below : "", path);
    }
    if (length < 0 || (size_t)length >= capacity) {
        ret_path[0] = '\0';
        return false;
    }
    return true;
}

/* An object whose name has no folder may be anywhere, so its path is not known. */
bool spw_start_object(const void *address, char ret_path[PATH_MAX])
{
    Dl_info info;

    return dladdr(address, &info) != 0 && info.dli_fname != NULL &&
           strchr(info.dli_fname, '/') != NULL &&
           spw_start_path(info.dli_fname, ret_path, PATH_MAX);
}

const char *spw_start_own_folder(char buffer[PATH_MAX])
{
    if (!spw_start_object((const void *)(uintptr_t)spw_start_own_folder, buffer)) {
        return NULL;
    }
    *strrchr(buffer, '/') = '\0';
    return buffer;
}

/* ---- the environment ---- */

/* Prefixes of the variables that a helper gets, and of the exceptions that it does not get. */
static const char *const wanted[] = {
    "CUDA_", "NVIDIA_", "LD_LIBRARY_PATH=", "HOME=", "PATH=", "SPILLWAY_SIM_"};
static const char *const unwanted[] = {"CUDA_INJECTION", "SPILLWAY_SIM_LOG=", "SPILLWAY_SIM_FAIL="};

static bool begins_with_one(const char *entry, const char *const *beginnings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strncmp(entry, beginnings[i], strlen(beginnings[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_wanted(const char *entry)
{
    return begins_with_one(entry, wanted, sizeof(wanted) / sizeof(*wanted)) &&
           !begins_with_one(entry, unwanted, sizeof(unwanted) / sizeof(*unwanted));
}

void spw_start_keep_environment(void)
{
    size_t used = 0, count = 0;

    if (start.has_variables) {
        return;
    }
    for (char **entry = environ; entry != NULL && *entry != NULL && count < KEPT; entry++) {
        size_t bytes = strlen(*entry) + 1;

        if (is_wanted(*entry) && bytes <= KEPT_BYTES - used) {
            start.variables[count] = memcpy(start.text + used, *entry, bytes);
            count++;
            used += bytes;
        }
    }
    start.variables[count] = NULL;
    start.has_variables = true;
}

char *const *spw_start_environment(void)
{
    return start.variables;
}
