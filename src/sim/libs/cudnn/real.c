#include "sim/libs/cudnn/real.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Opens the loaded object that contains an address. */
static void *open_object(const void *address)
{
    Dl_info info;
    struct link_map *map = NULL;

    if (dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL) {
        return NULL;
    }
    /* The name of the program itself is empty. */
    return dlopen(map->l_name[0] != '\0' ? map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
}

/* Looks for the file `name` in a list of folders, except in the one that holds `own`. */
static bool search(const Dl_serinfo *folders, const char *name, const char *own,
                   char ret_path[PATH_MAX])
{
    for (unsigned int i = 0; i < folders->dls_cnt; i++) {
        char found[PATH_MAX], *real;

        if (snprintf(found, sizeof(found), "%s/%s", folders->dls_serpath[i].dls_name, name) >=
            (int)sizeof(found)) {
            continue;
        }
        real = realpath(found, NULL);
        if (real != NULL && strcmp(real, own) != 0) {
            (void)snprintf(ret_path, PATH_MAX, "%s", real);
            free(real);
            return true;
        }
        free(real);
    }
    return false;
}

bool sim_cudnn_real_find(const void *caller, char ret_path[PATH_MAX])
{
    static const char here; /* in the simulated cuDNN */
    Dl_serinfo size, *folders = NULL;
    Dl_info own;
    void *handle = open_object(caller);
    char *real = dladdr(&here, &own) != 0 ? realpath(own.dli_fname, NULL) : NULL;
    bool found = false;

    if (handle != NULL && real != NULL && dlinfo(handle, RTLD_DI_SERINFOSIZE, &size) == 0 &&
        (folders = malloc(size.dls_size)) != NULL) {
        *folders = size;
        found = dlinfo(handle, RTLD_DI_SERINFO, folders) == 0 &&
                search(folders, strrchr(own.dli_fname, '/') + 1, real, ret_path);
    }
    free(folders);
    free(real);
    if (handle != NULL) {
        (void)dlclose(handle);
    }
    return found;
}
