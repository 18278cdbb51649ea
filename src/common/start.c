#include "common/start.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static char folder[PATH_MAX]; /* "": not known */

/* Another library's constructor may use CUDA before this one runs, so spw_start_folder calls it as
 * well. The C library's getcwd would allocate memory. For a folder that is out of reach, the
 * kernel's returns a path that is not absolute. */
__attribute__((constructor)) static void note_folder(void)
{
    static _Atomic bool noted;

    if (atomic_load_explicit(&noted, memory_order_acquire)) {
        return;
    }
    if (syscall(SYS_getcwd, folder, sizeof(folder)) <= 0 || folder[0] != '/') {
        folder[0] = '\0';
    }
    atomic_store_explicit(&noted, true, memory_order_release);
}

const char *spw_start_folder(void)
{
    note_folder();
    return folder[0] != '\0' ? folder : NULL;
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

/* An object that was found without a folder may be anywhere. */
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
