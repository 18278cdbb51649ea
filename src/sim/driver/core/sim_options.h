/* Options of the simulated driver: the SPILLWAY_SIM_* variables, read once at the first call.
 *
 * A value that cannot be used gives one line on stderr and the default. Read-only afterwards, so it
 * may be used with or without the simulator's lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/driver/core/parse.h"

enum sim_per {
    SIM_PER_RANGE, /* one call may cover several adjacent whole mappings */
    SIM_PER_CHUNK, /* exactly one mapping per call */
};

struct sim_options {
    struct sim_size memory;      /* SPILLWAY_SIM_MEMORY, per device, or a share of the profile's; 0:
                                  * the profile's */
    const char *profile;         /* SPILLWAY_SIM_PROFILE */
    unsigned int devices;        /* SPILLWAY_SIM_DEVICES */
    struct sim_size host_memory; /* SPILLWAY_SIM_HOST_MEMORY: page-locked and host-located memory,
                                  * or a share of the machine's */
    unsigned int host_nodes;     /* SPILLWAY_SIM_HOST_NODES: NUMA nodes, ids 0.. */
    uint64_t seed;               /* SPILLWAY_SIM_SEED */
    bool time;                   /* SPILLWAY_SIM_TIME: calls and work take time, see timing.h */
    const char *log_path;        /* SPILLWAY_SIM_LOG, NULL: no log */
    const char *fail;            /* SPILLWAY_SIM_FAIL, NULL: no injected faults */
    enum sim_per unmap;          /* SPILLWAY_SIM_UNMAP=range|chunk */
    enum sim_per set_access;     /* SPILLWAY_SIM_SETACCESS=range|chunk */
    bool unmap_waits;        /* SPILLWAY_SIM_UNMAP_WAITS: cuMemUnmap waits for the work queued */
    bool free_syncs;         /* SPILLWAY_SIM_FREE_SYNC: cuMemFree waits for the work queued */
    bool vmm_unsafe;         /* SPILLWAY_SIM_CAPTURE_VMM=unsafe|safe: VMM calls break another
                              * thread's global-mode capture, as cuMemAlloc does */
    bool host_numa;          /* SPILLWAY_SIM_HOST_NUMA: chunks may be at host locations */
    bool peers;              /* SPILLWAY_SIM_PEERS: devices can access each other */
    bool host_map;           /* SPILLWAY_SIM_HOST_MAP: accessible mappings are really mapped into
                              * the process; off: host access to device memory always faults */
    size_t va_max_bytes;     /* SPILLWAY_SIM_VA_MAX: most address space really reserved, beyond
                              * it mappings are in the tables only; 0: no limit of ours */
    uint64_t map_max;        /* SPILLWAY_SIM_MAP_MAX: kernel mappings to use at most; 0: from
                              * vm.max_map_count, less a reserve for the program */
    struct sim_size payload; /* SPILLWAY_SIM_PAYLOAD: most host memory for the content of simulated
                              * memory, or a share of what the host has available */
};

/* The options, read from the environment at the first use. Never NULL. */
const struct sim_options *sim_options(void);
