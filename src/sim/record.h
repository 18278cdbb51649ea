/* The record that a process on simulated devices leaves for the command that launched it.
 *
 * The simulated driver keeps it in a file of the folder that the launcher names in
 * SPILLWAY_RUN_DIR, called "sim-" and the pid, mapped and shared, so that it outlives a process
 * that is killed. Plain integers and short texts: this header belongs to both sides and includes
 * nothing of either. A change of layout raises the version; readers refuse other versions.
 *
 * Written under the simulator's lock; read by the launcher when the process has ended. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/bounds.h"
#include "common/layout.h"

/* Where a record does not tell what its process used, a symbolic link of its name, with this at the
 * end, leads to the reason, in words. */
#define SIM_RECORD_PROBLEM ".problem"

enum { SIM_RECORD_MAGIC = 0x53494d52, SIM_RECORD_VERSION = 8 };
enum { SIM_RECORD_DEVICES = SPW_DEVICES_MAX, SIM_RECORD_API = 48, SIM_RECORD_THREAD = 16 };
enum { SIM_RECORD_COMMAND = 1024, SIM_RECORD_MARKS = 256, SIM_RECORD_PATH = 256 };

/* The memory that was lacking when a request was refused. */
enum sim_record_lack {
    SIM_RECORD_NOTHING, /* none of the below: an injected failure, or no address space */
    SIM_RECORD_DEVICE,  /* memory of the device */
    SIM_RECORD_HOST,    /* host memory that the driver may lock */
};

/* Calls are told apart by whether they may be those of a memory pool in front of the driver. */
enum sim_record_kind {
    SIM_RECORD_CHUNK, /* cuMemCreate */
    SIM_RECORD_OTHER,
    SIM_RECORD_KINDS,
};

/* The last call of a kind that was answered out of memory. */
struct sim_record_refusal {
    uint64_t number; /* among the allocations asked of the device, from 1; 0: no allocation */
    uint64_t bytes;  /* that the call needed */
    uint64_t missing_bytes; /* that the device, or the host, lacked of them */
    uint64_t time_ns;       /* CLOCK_MONOTONIC */
    int32_t lack;           /* enum sim_record_lack */
    int32_t tid;
    bool overcome;            /* the same was granted later */
    char api[SIM_RECORD_API]; /* the driver's function, as exported */
    char thread[SIM_RECORD_THREAD];
};

struct sim_record_device {
    int32_t index; /* as the machine counts devices */
    uint64_t total_bytes;
    uint64_t used_bytes; /* taken from the device, now and at most */
    uint64_t used_peak_bytes;
    uint64_t own_bytes; /* of it: code, local memory and graphs, which no call asked for */
    uint64_t own_peak_bytes;
    uint64_t overhead_bytes; /* of it: what a card holds besides; contains own_bytes as far as that
                                goes */
    uint64_t program_peak_bytes; /* of it, without own_bytes, overhead_bytes and NCCL's, at most */
    uint64_t communicators, communicators_peak; /* of NCCL, now and at most */
    uint64_t ranks_peak;                        /* of one of them, at most */
    uint64_t nccl_bytes, nccl_peak_bytes;       /* what a card would hold for them: an estimate */
    uint64_t nccl_most_bytes, nccl_most_peak_bytes; /* and an upper bound */
    uint64_t nccl_taken_bytes; /* of used_bytes, for them: with SPILLWAY_SIM_OVERHEAD */
    uint64_t held_bytes; /* asked for by calls and not given back, in multiples of 512 bytes */
    uint64_t held_peak_bytes;
    uint64_t allocations;                /* calls that asked for memory of the device */
    uint64_t refusals[SIM_RECORD_KINDS]; /* calls answered out of memory */
    uint64_t refused[SIM_RECORD_KINDS];  /* requests: a call that is repeated counts once */
    uint64_t overcome[SIM_RECORD_KINDS]; /* of them, those that were granted later */
    uint64_t launches[SPW_LAYOUT_COUNT]; /* of kernels */
    uint64_t idle_launches;              /* of them, those that computed nothing */
    uint64_t small_reads;                /* by the host, after such a launch */
    uint64_t known_reads;                /* of them, those of results that were computed */
    uint64_t chosen;                     /* sizes that SPILLWAY_SIM_UNKNOWN decided */
    uint64_t bulk_reads;                 /* larger ones, of results that were not */
    uint64_t bulk_read_bytes;
    struct sim_record_refusal last[SIM_RECORD_KINDS]; /* of those */
    struct sim_record_refusal lost[SIM_RECORD_KINDS]; /* the one before it that was not overcome */
    /* With SPILLWAY_SIM_TIME: */
    uint64_t end_ns;                        /* when the last work of the device ended */
    uint64_t link_in_bytes, link_out_bytes; /* of host memory that kernels used */
    uint64_t kernels;                       /* that ended */
    uint64_t mark_every;                    /* so many kernels lie between two marks */
    uint64_t mark_count;
    uint64_t marks_ns[SIM_RECORD_MARKS]; /* when kernel mark_every ended, 2 * mark_every, ... */
};

/* A read of at most so many bytes may decide what the program does next: a size, a condition. */
enum { SIM_RECORD_SMALL = 4096 };

struct sim_record {
    uint32_t magic;
    uint32_t version;
    uint64_t bytes; /* sizeof(struct sim_record) of the writer */
    int32_t pid;
    int32_t device_count;
    uint32_t command_bytes;
    char command[SIM_RECORD_COMMAND]; /* /proc/PID/cmdline, as far as it fits */
    char runtime[SIM_RECORD_PATH]; /* has NVIDIA's runtime linked in, which is refused; "": none */
    struct sim_record_device devices[SIM_RECORD_DEVICES];
};
