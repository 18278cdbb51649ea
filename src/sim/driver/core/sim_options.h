/* Options of the simulated driver: the SPILLWAY_SIM_* variables of common/options.def, which has
 * their defaults.
 *
 * The options are read at the first use and do not change afterwards, so no lock is needed. A value
 * that cannot be used is reported in one line on stderr, and the default is used. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/options.h"

/* A size of type struct spw_option_value may be a share of a total. spw_option_bytes() converts it
 * to bytes. */
struct sim_options {
    struct spw_option_value memory; /* SPILLWAY_SIM_MEMORY of each device, or a share of the
                                     * profile's memory; 0: all of it */
    const char *profile;            /* SPILLWAY_SIM_PROFILE */
    bool overhead;                  /* SPILLWAY_SIM_OVERHEAD: charge the overhead of a card */
    unsigned int devices;           /* SPILLWAY_SIM_DEVICES */
    unsigned int world; /* SPILLWAY_SIM_WORLD: ranks of a job in which only this rank runs; 0: all
                         * ranks run */
    struct spw_option_value host_memory; /* SPILLWAY_SIM_HOST_MEMORY: limit of page-locked and
                                          * host-located memory, or a share of the machine's */
    unsigned int host_nodes;             /* SPILLWAY_SIM_HOST_NODES: NUMA nodes, numbered from 0 */
    uint64_t spin;                       /* SPILLWAY_SIM_SPIN: limit of reads in a row, see spin.h;
                                          * 0: no limit */
    uint64_t link, link_out;             /* SPILLWAY_SIM_LINK and SPILLWAY_SIM_LINK_OUT: bytes a
                                          * nanosecond to the device and from it */
    enum spw_unknown unknown;            /* SPILLWAY_SIM_UNKNOWN: sizes of unknown results */
    uint64_t seed;                       /* SPILLWAY_SIM_SEED */
    bool time;                           /* SPILLWAY_SIM_TIME: calls and work take time; timing.h */
    enum spw_costs costs;                /* SPILLWAY_SIM_COSTS: the time of VMM calls */
    enum spw_rates rates;                /* SPILLWAY_SIM_RATES: the time of kernels */
    const char *log_path;                /* SPILLWAY_SIM_LOG; NULL: no log */
    const char *fail;                    /* SPILLWAY_SIM_FAIL; NULL: no injected failures */
    enum spw_per unmap;                  /* SPILLWAY_SIM_UNMAP: RANGE, one call may cover several
                                          * adjacent whole mappings; CHUNK, exactly one */
    enum spw_per set_access;             /* SPILLWAY_SIM_SETACCESS */
    bool unmap_waits;           /* SPILLWAY_SIM_UNMAP_WAITS: cuMemUnmap waits for queued work */
    bool free_syncs;            /* SPILLWAY_SIM_FREE_SYNC: cuMemFree waits for queued work */
    bool vmm_unsafe;            /* SPILLWAY_SIM_CAPTURE_VMM=unsafe: VMM calls break another
                                 * thread's global-mode capture, as cuMemAlloc does */
    bool regrant_unsafe;        /* SPILLWAY_SIM_REGRANT: setting access again faults queued work */
    enum spw_crossing crossing; /* SPILLWAY_SIM_CROSSING: copies and memsets that cross from device
                                 * to host memory */
    enum spw_reach reach;       /* SPILLWAY_SIM_REACH: memory that copies between devices reach */
    enum spw_handles handles;   /* SPILLWAY_SIM_HANDLES: queries of parameters with the other kind
                                 * of handle, a CUfunction for a CUkernel or the reverse */
    enum spw_hosts hosts;       /* SPILLWAY_SIM_HOST_NUMA: where chunks of host memory may be */
    bool rdma;                  /* SPILLWAY_SIM_RDMA: network cards may be given chunks */
    bool peers;                 /* SPILLWAY_SIM_PEERS: devices can access each other */
    bool host_map;              /* SPILLWAY_SIM_HOST_MAP: accessible mappings are mapped into
                                 * the process; off: host access always faults */
    uint64_t va_max_bytes;      /* SPILLWAY_SIM_VA_MAX: limit of the address space that is reserved
                                 * in the process; mappings beyond it are in the tables only; 0: no
                                 * limit */
    uint64_t map_max; /* SPILLWAY_SIM_MAP_MAX: limit of kernel mappings; 0: vm.max_map_count less a
                       * reserve for the program */
    struct spw_option_value payload; /* SPILLWAY_SIM_PAYLOAD: limit of host memory for the content
                                      * of simulated memory, or a share of the available memory */
};

/* The options. Never NULL. Needs no lock. */
const struct sim_options *sim_options(void);
