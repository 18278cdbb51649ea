/* The file "devices", which the processes of a run share. It shows how much memory of each
 * simulated device each process holds. The file is in the folder that the launcher names in
 * SPILLWAY_RUN_DIR. Each process that initialises CUDA has a slot in the file, and writes into the
 * slot how many bytes of each device it holds. The used bytes of a device are the sum over the
 * slots of processes that are alive. If device and host share one memory, the bytes of a process
 * include what its host's side takes.
 *
 * The simulated driver and the launcher share this header, as they share record.h. Every change of
 * the layout must increase the version. Readers reject other versions. Devices are numbered as on
 * the machine, independent of CUDA_VISIBLE_DEVICES.
 *
 * Locking: the file is written under `mutex`, which is robust because a process may be killed at
 * any time. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "common/bounds.h"

enum { SIM_DEVICES_MAGIC = 0x53494d44, SIM_DEVICES_VERSION = 2, SIM_DEVICES_PROCESSES = 256 };

struct sim_devices_process {
    int32_t pid;                       /* 0: the slot was never used */
    uint64_t start;                    /* start of `pid`, in clock ticks since boot; 0: unknown */
    uint64_t used[SPW_DEVICES_MAX];    /* bytes that the process holds now */
    uint64_t at_peak[SPW_DEVICES_MAX]; /* bytes that the process held at the time of `peak` */
};

struct sim_devices {
    uint32_t magic;
    uint32_t version;
    uint64_t bytes; /* sizeof(struct sim_devices) of the writer */
    pthread_mutex_t mutex;
    uint64_t peak[SPW_DEVICES_MAX]; /* the most bytes of a device held at one time */
    uint32_t died[SPW_DEVICES_MAX]; /* the machine died of this device's memory */
    uint32_t process_count;         /* slots that are or were in use */
    struct sim_devices_process processes[SIM_DEVICES_PROCESSES];
};
