/* The simulated GPU: driver, CUDA runtime and libraries. It does not know any folder other than
 * common and gpu.
 *
 *   cudnn_question              the form of questions to NVIDIA's cuDNN
 *   demand                      the demand of a kernel
 *   devices                     a shared file: the device memory of all processes of a run
 *   libs/find_header            finds the headers of NVIDIA's libraries
 *   libs/gen_stubs              writes stubs for the functions that a library declares
 *   link_outputs                links the files of a library into its folder
 *   record                      the record that a process leaves for the launcher
 *   single_rank/sitecustomize   Python's start for one rank without the others
 *
 * The record is a file "sim-<pid>" in the folder that the launcher names in SPILLWAY_RUN_DIR. The
 * simulated driver maps the file as shared memory, so that the record remains if the process is
 * killed. The driver and the launcher share this header, so the header includes no header of either
 * of them, and the record contains only plain integers and short texts. Every change of the layout
 * must increase the version. Readers reject other versions.
 *
 * Locking: the driver writes the record under the simulator's lock. The launcher reads the record
 * after the process has ended. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/bounds.h"
#include "common/layout.h"
#include "gpu/rate.h"

/* If a record is incomplete, the folder also contains a symbolic link with the record's name and
 * this suffix. The target of the link is the reason in words. */
#define SIM_RECORD_PROBLEM ".problem"

enum { SIM_RECORD_MAGIC = 0x53494d52, SIM_RECORD_VERSION = 10 };
enum { SIM_RECORD_DEVICES = SPW_DEVICES_MAX, SIM_RECORD_API = 48, SIM_RECORD_THREAD = 16 };
enum { SIM_RECORD_COMMAND = 1024, SIM_RECORD_MARKS = 256, SIM_RECORD_PATH = 256 };

/* The kind of memory that was missing when a request was refused. */
enum sim_record_lack {
    SIM_RECORD_NOTHING, /* no memory was missing: an injected failure, or no free addresses */
    SIM_RECORD_DEVICE,  /* memory of the device */
    SIM_RECORD_HOST,    /* host memory that may be page-locked */
};

/* Kinds of calls: a memory pool in front of the driver calls only cuMemCreate. */
enum sim_record_kind {
    SIM_RECORD_CHUNK, /* cuMemCreate */
    SIM_RECORD_OTHER,
    SIM_RECORD_KINDS,
};

/* The last call of a kind that failed because memory was missing. */
struct sim_record_refusal {
    uint64_t number;        /* number of the allocation on the device, from 1; 0: no allocation */
    uint64_t bytes;         /* bytes that the call needed */
    uint64_t missing_bytes; /* part of `bytes` that was not free on the device or the host */
    uint64_t time_ns;       /* CLOCK_MONOTONIC */
    int32_t lack;           /* enum sim_record_lack */
    int32_t tid;
    bool overcome;            /* the same request succeeded later */
    char api[SIM_RECORD_API]; /* the driver's function, as exported */
    char thread[SIM_RECORD_THREAD];
};

/* A step of the program on a card with ample memory, estimated (driver/exec/meter.h). */
struct sim_record_step {
    uint64_t launches; /* of kernels; 0: no period was found */
    uint64_t ns;
    uint64_t host_ns; /* the time that the program needs for its launches */
    uint64_t busy_ns; /* the time of its kernels */
    uint64_t sure_ns; /* of the kernels whose shapes are known */
    /* Parts of busy_ns: kernels limited by the arithmetic of a type; kernels limited by memory. */
    uint64_t computing_ns[SPW_GPU_TYPES], moving_ns;
};

struct sim_record_device {
    int32_t index; /* the device's number on the machine */
    uint64_t total_bytes;
    uint64_t used_bytes; /* taken from the device: now, and at the peak */
    uint64_t used_peak_bytes;
    uint64_t own_bytes; /* part of used_bytes for code, local memory and graphs */
    uint64_t own_peak_bytes;
    uint64_t overhead_bytes; /* part of used_bytes: a card's overhead; own_bytes count towards it */
    bool one_memory;         /* the device has no memory of its own */
    uint64_t together_peak_bytes; /* used_bytes plus the host memory of the process */
    uint64_t died_missing_bytes;  /* above 0: the machine died, because this much of its one memory
                                   * was missing */
    uint64_t program_peak_bytes;  /* used_bytes without own, overhead and NCCL bytes */
    uint64_t communicators, communicators_peak;     /* of NCCL: now, and at the peak */
    uint64_t ranks_peak;                            /* of the largest communicator */
    uint64_t nccl_bytes, nccl_peak_bytes;           /* estimate of NCCL's memory on a card */
    uint64_t nccl_most_bytes, nccl_most_peak_bytes; /* upper bound of NCCL's memory */
    uint64_t nccl_taken_bytes; /* part of used_bytes that NCCL takes (SPILLWAY_SIM_OVERHEAD) */
    uint64_t held_bytes;       /* allocated by calls and not yet freed, in multiples of 512 bytes */
    uint64_t held_peak_bytes;
    uint64_t allocations;                /* calls that asked for memory of the device */
    uint64_t refusals[SIM_RECORD_KINDS]; /* calls answered out of memory */
    uint64_t refused[SIM_RECORD_KINDS];  /* refused requests; a repeated call counts once */
    uint64_t overcome[SIM_RECORD_KINDS]; /* refused requests that were granted later */
    uint64_t launches[SPW_LAYOUT_COUNT]; /* of kernels */
    uint64_t idle_launches;              /* kernel launches that computed nothing */
    uint64_t small_reads;                /* by the host, after the first idle launch */
    uint64_t known_reads;                /* small reads of computed results */
    uint64_t chosen;                     /* sizes that SPILLWAY_SIM_UNKNOWN decided */
    uint64_t bulk_reads;                 /* larger reads of results that were not computed */
    uint64_t bulk_read_bytes;
    uint64_t engines_asked;   /* graphs whose engines NVIDIA's cuDNN named */
    uint64_t engines_guessed; /* graphs whose engine the simulated cuDNN guessed */
    uint64_t searches;        /* graphs of a program that asked for all engines */
    struct sim_record_refusal last[SIM_RECORD_KINDS]; /* the last refusal */
    struct sim_record_refusal lost[SIM_RECORD_KINDS]; /* an earlier refusal, not overcome */
    struct sim_record_step step;                      /* the last one */
    /* With SPILLWAY_SIM_TIME: */
    uint64_t end_ns;                        /* when the last work of the device ended */
    uint64_t link_in_bytes, link_out_bytes; /* host memory that kernels read and wrote */
    uint64_t kernels;                       /* number that ended */
    uint64_t mark_every;                    /* number of kernels from one mark to the next */
    uint64_t mark_count;
    uint64_t marks_ns[SIM_RECORD_MARKS]; /* end of kernels mark_every, 2 * mark_every, ... */
};

/* Maximum size of a small read, in bytes. The program may branch on the value of a small read, such
 * as a size or a condition. */
enum { SIM_RECORD_SMALL = 4096 };

struct sim_record {
    uint32_t magic;
    uint32_t version;
    uint64_t bytes; /* sizeof(struct sim_record) of the writer */
    int32_t pid;
    int32_t device_count;
    uint32_t command_bytes;
    char command[SIM_RECORD_COMMAND]; /* the beginning of /proc/PID/cmdline */
    char runtime[SIM_RECORD_PATH];    /* refused file that contains NVIDIA's runtime; "": none */
    struct sim_record_device devices[SIM_RECORD_DEVICES];
};
