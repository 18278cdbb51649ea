/* What a process may do with host memory, apart from how much there is. No locking, no
 * allocation. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/host_bound.h"

struct spw_host_rights {
    bool wsl;         /* the machine is Windows's Linux (WSL2), which limits page-locked memory */
    bool places;      /* the process may choose NUMA nodes; in a container, without the capability
                         SYS_NICE, it may not */
    uint64_t memlock; /* RLIMIT_MEMLOCK in bytes; UINT64_MAX: unlimited */
};

/* Fills *ret_rights. The files of the machine are below the folder `root`; "": the real machine's;
 * NULL: there are none. */
void spw_driver_host_rights_below(const char *root, struct spw_host_rights *ret_rights);

/* Returns the limit that explains why the driver refused to lock at most `request_bytes` more, when
 * `wall_bytes` were page-locked and the machine had room. */
enum spw_host_bound spw_driver_host_rights_wall(const struct spw_host_rights *rights,
                                                uint64_t wall_bytes, uint64_t request_bytes);
