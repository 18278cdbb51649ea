#include "cli/launch/installation.h"

#include "cli/console/messages.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Folders with libraries, relative to the command's folder. The folders of a build or a bundle come
 * first, then the folders of an installation. */
static const char *const folders[] = {".", "../lib", "../lib/spillway", "../" SPW_LIBDIR,
                                      "../" SPW_LIBDIR "/spillway"};

bool spw_cli_installation_self(char ret_path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", ret_path, PATH_MAX - 1);
    const char *executed;

    if (length > 0) {
        ret_path[length] = '\0';
        return true;
    }
    /* Used if /proc is not mounted: the path in the execve call. */
    executed = (const char *)getauxval(AT_EXECFN);
    return executed != NULL && realpath(executed, ret_path) != NULL;
}

/* Resolves links in the folder, but not in the file name, so that the files next to a link are
 * used. */
static bool join(const char *base, const char *folder, const char *name, char ret_path[PATH_MAX])
{
    static char relative[2 * PATH_MAX], resolved[PATH_MAX];

    snprintf(relative, sizeof(relative), "%s/%s", base, folder);
    return realpath(relative, resolved) != NULL &&
           snprintf(ret_path, PATH_MAX, "%s/%s", resolved, name) < PATH_MAX &&
           access(ret_path, R_OK) == 0;
}

bool spw_cli_installation_find(const char *command, const char *name, char ret_path[PATH_MAX])
{
    char self[PATH_MAX];
    const char *folder;

    if (!spw_cli_installation_self(self)) {
        spw_cli_complain(command, "cannot find its own folder (%s)", strerror(errno));
        return false;
    }
    folder = dirname(self);
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        if (!join(folder, folders[i], name, ret_path)) {
            continue;
        }
        if (strpbrk(ret_path, ": ") != NULL) {
            spw_cli_complain(
                command,
                "%s: the path contains a space or a colon, which LD_PRELOAD does not allow; "
                "move spillway to another folder",
                ret_path);
            return false;
        }
        return true;
    }
    spw_cli_complain(command, "%s is missing (searched in %s and in ../lib beside it)", name,
                     folder);
    return false;
}
