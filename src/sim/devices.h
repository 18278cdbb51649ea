/* How much memory of each simulated device the processes of a run hold: a file that they share,
 * called "devices", in the folder that the launcher names in SPILLWAY_RUN_DIR. Each process that
 * initialises CUDA has a slot and writes into it how many bytes of each device it holds. The used
 * bytes of a device are the sum over the slots of processes that are alive.
 *
 * This header belongs to the simulated driver and to the launcher, as record.h does. A change of
 * layout raises the version; readers refuse other versions. A device has the index that it has on
 * the machine, whatever CUDA_VISIBLE_DEVICES is.
 *
 * Written under `mutex`, which is robust because a process may be killed at any time. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "common/bounds.h"

enum { SIM_DEVICES_MAGIC = 0x53494d44, SIM_DEVICES_VERSION = 1, SIM_DEVICES_PROCESSES = 256 };

struct sim_devices_process {
    int32_t pid;                       /* 0: the slot was never used */
    uint64_t start;                    /* of `pid`, in clock ticks since boot; 0: unknown */
    uint64_t used[SPW_DEVICES_MAX];    /* bytes that it holds now */
    uint64_t at_peak[SPW_DEVICES_MAX]; /* bytes that it held at the time of `peak` */
};

struct sim_devices {
    uint32_t magic;
    uint32_t version;
    uint64_t bytes; /* sizeof(struct sim_devices) of the writer */
    pthread_mutex_t mutex;
    uint64_t peak[SPW_DEVICES_MAX]; /* the most bytes of a device held at one time */
    uint32_t process_count;         /* slots that are or were in use */
    struct sim_devices_process processes[SIM_DEVICES_PROCESSES];
};
