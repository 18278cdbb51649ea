#include "driver/host_rights.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };

static bool is_wsl(const char *root)
{
    char path[PATH_BYTES];
    int length = snprintf(path, sizeof(path), "%s/dev/dxg", root);

    return length < (int)sizeof(path) && access(path, F_OK) == 0;
}

/* Asks for the process's own policy, which changes nothing. Filters of containers that refuse to
 * set a policy also refuse this. A kernel without NUMA has no such call, and nothing to refuse. */
static bool may_choose_nodes(void)
{
    return syscall(SYS_get_mempolicy, NULL, NULL, 0, NULL, 0) == 0 || errno != EPERM;
}

void spw_driver_host_rights_below(const char *root, struct spw_host_rights *ret_rights)
{
    struct rlimit limit;
    int error = errno;
    bool limited = getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;

    *ret_rights = (struct spw_host_rights){
        .wsl = root != NULL && is_wsl(root),
        .places = may_choose_nodes(),
        .memlock = limited ? limit.rlim_cur : UINT64_MAX,
    };
    errno = error;
}

enum spw_host_bound spw_driver_host_rights_wall(const struct spw_host_rights *rights,
                                                uint64_t wall_bytes, uint64_t request_bytes)
{
    if (rights->wsl) {
        return SPW_HOST_BOUND_WSL;
    }
    return rights->memlock >= wall_bytes && rights->memlock - wall_bytes < request_bytes
               ? SPW_HOST_BOUND_MEMLOCK
               : SPW_HOST_BOUND_DRIVER;
}
