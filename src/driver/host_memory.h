/* Reads the host memory of the machine, and the limits of the process's control groups.
 *
 * Reads /proc and /sys/fs/cgroup at every call. No locking, no allocation. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/host_bound.h"

struct spw_host_memory {
    uint64_t total;            /* bytes of the machine's memory; 0 when unknown */
    uint64_t available;        /* bytes available in the machine, including reclaimable caches */
    bool limited;              /* a control group sets a limit */
    uint64_t group_limit;      /* bytes: the limit of the group that has the least memory left */
    uint64_t group_leaves;     /* bytes left in that group */
    uint64_t group_own_leaves; /* bytes that the groups leave if only anonymous and shared memory
                                  counts */
};

/* Fills *ret_memory from the files below the folder `root`, or from those of the machine ("").
 * Values that cannot be read are 0. */
void spw_driver_host_memory_below(const char *root, struct spw_host_memory *ret_memory);

/* The default budget for spilled memory, in bytes: half of the available host memory. */
uint64_t spw_driver_host_memory_share(const struct spw_host_memory *memory);

/* The limit that leaves least of the available memory now: the machine's or the control group's. */
enum spw_host_bound spw_driver_host_memory_bound(const struct spw_host_memory *memory);

/* Bytes that may be taken now. In the machine and in the group, an eighth of the memory (at most 1
 * GiB) stays free. UINT64_MAX when the machine's memory is unknown and no group has a limit. */
struct spw_host_limit spw_driver_host_memory_room(const struct spw_host_memory *memory);

/* Bytes that may be taken now from a memory that device and host share: what is available in the
 * machine less `reserve`, and what the control groups leave less an eighth of the limit, at most
 * `reserve`. The groups may not count what the driver allocates: `held` bytes of this process. If
 * they do, `held` does not count twice. UINT64_MAX when the machine's memory is unknown. */
uint64_t spw_driver_host_memory_one(const struct spw_host_memory *memory, uint64_t held,
                                    uint64_t reserve);

/* The number of NVIDIA GPUs of the machine, visible to this process or not: the folders in
 * /proc/driver/nvidia/gpus below `root`. 0 when unknown. It is needed because processes that each
 * see only one GPU still share the machine's memory. */
int spw_driver_host_memory_gpus(const char *root);

/* ---- the machine that has the devices ---- */

/* Fills *ret_memory. With simulated devices, the machine is simulated as well: its files are below
 * SPILLWAY_SIM_ROOT. Without them it has SPILLWAY_SIM_HOST_MEMORY bytes. All of them count as
 * available, because their use is unknown. */
void spw_driver_host_memory(bool simulated, struct spw_host_memory *ret_memory);

/* Returns the number of GPUs of the machine, visible to this process or not; 0: unknown. */
uint64_t spw_driver_host_gpus(bool simulated);
