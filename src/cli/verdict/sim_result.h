/* The result of a simulated run. It is read from the files in the run directory
 * (launch/run_directory.h): the records of the simulated driver and, if the pool was used, the
 * statistics of the pool. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bounds.h"
#include "common/layout.h"
#include "gpu/rate.h"
#include "stats/stats.h"

enum { SPW_CLI_SIM_PROCESSES = 256, SPW_CLI_SIM_NAME = 128, SPW_CLI_SIM_PATH = 256 };

/* The kind of memory that was missing when a call failed. */
enum spw_cli_sim_lack {
    SPW_CLI_SIM_LACK_NOTHING, /* the failure was injected, or address space was missing */
    SPW_CLI_SIM_LACK_DEVICE,
    SPW_CLI_SIM_LACK_HOST,
    SPW_CLI_SIM_LACK_MACHINE, /* of a device without memory of its own: the machine died */
};

/* A call that failed because memory ran out. */
struct spw_cli_sim_refusal {
    uint64_t number; /* number of the allocation on its device, from 1; 0: not an allocation */
    uint64_t bytes;  /* requested */
    uint64_t missing_bytes; /* 0 with LACK_DEVICE: enough memory was free, but fragmented */
    bool at_least;          /* missing_bytes is a lower bound */
    uint64_t time_ns;       /* CLOCK_MONOTONIC */
    enum spw_cli_sim_lack lack;
    bool overcome; /* the same call succeeded later */
    int tid;
    char api[64]; /* name of the function, without suffixes such as _v2 */
    char thread[16];
};

enum { SPW_CLI_SIM_HALF = 129 }; /* half of the marks in the record, and one */

/* A step of the program, estimated; times in nanoseconds. */
struct spw_cli_sim_step {
    uint64_t launches; /* of kernels */
    uint64_t ns;
    uint64_t host_ns; /* the time that the program needs for its launches */
    uint64_t busy_ns; /* the time of its kernels */
    uint64_t sure_ns; /* of those whose shapes are known */
    /* Parts of busy_ns: of kernels that the arithmetic of a type limits, or the memory. */
    uint64_t computing_ns[SPW_GPU_TYPES], moving_ns;
};

/* The use of one device by one process. */
struct spw_cli_sim_device {
    bool used;
    int index;                   /* number of the device in the machine */
    uint64_t shared_peak_bytes;  /* in use at the common peak of all processes */
    bool pooled;                 /* the pool served the device */
    uint64_t memory_bytes;       /* of the device */
    uint64_t total_bytes;        /* usable memory; with the pool, the limit of the pool */
    uint64_t live_peak_bytes;    /* held by the program, in multiples of 512 */
    uint64_t pool_peak_bytes;    /* pooled: held by the pool, including free memory */
    uint64_t ordered_peak_bytes; /* pooled: live bytes allocated in stream order */
    uint64_t used_bytes;         /* device memory in use now */
    uint64_t used_peak_bytes;    /* highest device memory in use */
    uint64_t allocations;        /* calls that requested memory; pooled: those served by the pool */
    uint64_t own_peak_bytes;     /* in use for the driver's code, local memory and graphs */
    uint64_t overhead_bytes;     /* in use for the overhead of a card; 0: not simulated */
    bool one_memory;             /* the device has no memory of its own, but uses the host's */
    uint64_t host_side_bytes;    /* one memory: the peak of device and host together, less the peak
                                  * of the device */
    uint64_t program_peak_bytes; /* in use, except own, overhead and NCCL's memory */
    uint64_t communicators;      /* highest number of NCCL communicators at one time */
    uint64_t ranks;              /* number of ranks in the largest communicator */
    uint64_t nccl_bytes;         /* peak memory of the communicators on a card: estimate */
    uint64_t nccl_most_bytes;    /* upper bound of nccl_bytes */
    uint64_t host_peak_bytes;    /* in host memory; 0: none, or only by pauses */
    uint64_t placed_peak_bytes;  /* part placed by rules: the sum of the rules' peaks */
    bool spilled;                /* a part of host_peak_bytes was not placed by rules */
    uint64_t spilled_bytes;      /* total moved to the host */
    uint64_t promoted_bytes;     /* total moved back */
    uint64_t step_out_bytes;     /* moved to the host in one step; 0: no step was predicted */
    uint64_t step_in_bytes;      /* moved back in it */
    uint64_t paused_bytes;       /* the part of spilled_bytes that pauses moved */
    uint64_t refusals;           /* calls that failed with out of memory */
    uint64_t overcome;           /* failed requests that later succeeded */
    uint64_t lost;               /* failed requests that never succeeded */
    uint64_t launches[SPW_LAYOUT_COUNT];
    uint64_t small_reads, bulk_reads, bulk_read_bytes; /* reads of results by the host */
    uint64_t engines_asked;             /* graphs whose engines NVIDIA's cuDNN named */
    uint64_t engines_guessed;           /* graphs whose engine the simulated cuDNN guessed */
    uint64_t searches;                  /* graphs of which the program tried all engines */
    uint64_t chosen;                    /* number of sizes that SPILLWAY_SIM_UNKNOWN determined */
    uint64_t known_reads;               /* small reads of results that were computed */
    uint64_t half_ns[SPW_CLI_SIM_HALF]; /* simulated times in the second half of the kernels,
                                         * equally many kernels apart */
    struct spw_cli_sim_step step;       /* with ample memory; without launches: not known */
    unsigned half_count;                /* of them; 0: too few kernels, or no simulated time */
    uint64_t link_bytes;                /* of host memory that kernels used */
    uint64_t host_limit_bytes;          /* pooled: most host memory to use; 0: not known */
    uint64_t host_bound;                /* the limit behind it, an enum spw_host_bound */
    uint64_t step_ns, step_held_ns;  /* pooled: a measured step, and its part that moves held up */
    struct spw_cli_sim_refusal last; /* latest failure; if lost > 0, the latest lost request */
};

/* One process that initialized CUDA. */
struct spw_cli_sim_process {
    int pid;
    int64_t rank;   /* in a distributed job; -1: none, or not known without the pool */
    uint32_t ranks; /* of the job; 0: not known */
    char name[SPW_CLI_SIM_NAME];
    bool used;                      /* the process used at least one device */
    char runtime[SPW_CLI_SIM_PATH]; /* file that contains NVIDIA's CUDA runtime; "": none */
    char sites[SPW_CLI_SIM_PATH];   /* file of the call sites (callsite/shm.h); "": none */
    bool tensors; /* stream-ordered allocations are PyTorch tensors (mode "tensor") */
    int device_count;
    struct spw_cli_sim_device devices[SPW_DEVICES_MAX];
};

/* A rule of a policy that placed memory on the host. */
struct spw_cli_sim_rule {
    char name[SPW_STATS_RULE];
    uint64_t host_peak_bytes; /* sum of the peaks on each device of each process */
};

struct spw_cli_sim_result {
    size_t count;
    size_t left_out;    /* number of processes beyond SPW_CLI_SIM_PROCESSES */
    size_t lost;        /* number of processes whose use of devices is not known */
    char problem[1024]; /* reason for the first lost process; "": not known */
    struct spw_cli_sim_process *processes;
    struct spw_cli_sim_rule rules[SPW_ACCOUNTS];
    size_t rule_count;
    uint64_t lost_requests, overcome;       /* sums over all devices */
    uint64_t host_peak_bytes;               /* the sum of all peaks of memory on the host */
    bool spilled;                           /* a device spilled */
    bool real;                              /* the devices are those of this machine */
    uint64_t shared_peaks[SPW_DEVICES_MAX]; /* by index of the device: most bytes that all
                                             * processes held together */
};

/* Reads the run directory. Always initializes *ret_result. The caller frees it with
 * spw_cli_sim_result_fini. With `real`, the result is of a run on this machine's devices, which has
 * only the figures of the pool. */
void spw_cli_sim_result_read(bool real, struct spw_cli_sim_result *ret_result);
void spw_cli_sim_result_fini(struct spw_cli_sim_result *result);

/* Iterates over all devices of all processes. Returns the device after `device`, or the first
 * device if `device` is NULL. Returns NULL at the end. */
const struct spw_cli_sim_device *spw_cli_sim_next(const struct spw_cli_sim_result *result,
                                                  const struct spw_cli_sim_device *device);

/* Returns the process that used a device. *ret_ordinal is the ordinal of the device in this
 * process. */
const struct spw_cli_sim_process *spw_cli_sim_process_of(const struct spw_cli_sim_result *result,
                                                         const struct spw_cli_sim_device *device,
                                                         int *ret_ordinal);

/* Returns the device with the latest lost request. The request is in the member `last` of the
 * device. Returns NULL if no request was lost. */
const struct spw_cli_sim_device *
spw_cli_sim_result_failure(const struct spw_cli_sim_result *result);

/* Returns the number of processes that held memory of a device at the common peak of all
 * processes. */
size_t spw_cli_sim_result_sharers(const struct spw_cli_sim_result *result, int index);

/* The outcome of a run. */
enum spw_cli_sim_outcome {
    SPW_CLI_SIM_UNUSED,       /* no process used a device */
    SPW_CLI_SIM_UNRECORDED,   /* the use of devices by a process is not known */
    SPW_CLI_SIM_FITS,         /* the command succeeded; only rules of a policy placed memory on the
                               * host */
    SPW_CLI_SIM_SPILLS,       /* the command succeeded by spilling to the host */
    SPW_CLI_SIM_CONTINUED,    /* the command succeeded, although a request was lost */
    SPW_CLI_SIM_DOES_NOT_FIT, /* the command failed after a request was lost */
    SPW_CLI_SIM_FAILED,       /* the command failed for another reason */
};

/* Returns the outcome of a run whose command ended with exit code `code`. */
enum spw_cli_sim_outcome spw_cli_sim_result_outcome(const struct spw_cli_sim_result *result,
                                                    int code);
