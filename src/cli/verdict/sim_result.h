/* The result of a simulated run, from the run directory (launch/run_directory.h): the simulated
 * driver's records and, if the pool was used, its statistics. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bounds.h"
#include "common/layout.h"
#include "stats/stats.h"

enum { SPW_CLI_SIM_PROCESSES = 256, SPW_CLI_SIM_NAME = 128, SPW_CLI_SIM_PATH = 256 };

/* The memory that a failed call lacked. */
enum spw_cli_sim_lack {
    SPW_CLI_SIM_LACK_NOTHING, /* the failure was injected, or there was no address space */
    SPW_CLI_SIM_LACK_DEVICE,
    SPW_CLI_SIM_LACK_HOST,
};

/* A call that failed with out of memory. */
struct spw_cli_sim_refusal {
    uint64_t number;        /* of the allocation on its device, from 1; 0: not an allocation */
    uint64_t bytes;         /* requested */
    uint64_t missing_bytes; /* 0 with LACK_DEVICE: enough was free, but fragmented */
    bool at_least;          /* the device lacked missing_bytes or more */
    uint64_t time_ns;       /* CLOCK_MONOTONIC */
    enum spw_cli_sim_lack lack;
    bool overcome; /* the same call succeeded later */
    int tid;
    char api[64]; /* the function's name, without _v2 and the like */
    char thread[16];
};

/* The use of one device by one process. */
struct spw_cli_sim_device {
    bool used;
    int index;                   /* number of the device in the machine */
    uint64_t shared_peak_bytes;  /* in use when all processes together used most */
    bool pooled;                 /* the pool served the device */
    uint64_t memory_bytes;       /* of the device */
    uint64_t total_bytes;        /* usable memory: with the pool, its limit */
    uint64_t live_peak_bytes;    /* held by the program, in multiples of 512 */
    uint64_t pool_peak_bytes;    /* pooled: held by the pool, free memory included */
    uint64_t ordered_peak_bytes; /* pooled: live bytes allocated in stream order */
    uint64_t used_bytes;         /* device memory in use now */
    uint64_t used_peak_bytes;    /* most device memory in use */
    uint64_t allocations;        /* calls that requested memory; pooled: those served by the pool */
    uint64_t own_peak_bytes;     /* in use for the driver's code, local memory and graphs */
    uint64_t overhead_bytes;     /* in use for the overhead of a card; 0: not simulated */
    uint64_t program_peak_bytes; /* in use, except own, overhead and NCCL's memory */
    uint64_t communicators;      /* of NCCL, most at one time */
    uint64_t ranks;              /* of the largest communicator */
    uint64_t nccl_bytes;         /* peak memory of the communicators on a card: estimate */
    uint64_t nccl_most_bytes;    /* the same: upper bound */
    uint64_t host_peak_bytes;    /* in host memory; 0: none, or only by pauses */
    uint64_t placed_peak_bytes;  /* its part placed by rules: the sum of the rules' peaks */
    bool spilled;                /* a part of host_peak_bytes was not placed by rules */
    uint64_t spilled_bytes;      /* moved to the host, in all */
    uint64_t promoted_bytes;     /* moved back, in all */
    uint64_t paused_bytes;       /* the part of spilled_bytes that pauses moved */
    uint64_t refusals;           /* calls that failed with out of memory */
    uint64_t overcome;           /* failed requests that later succeeded */
    uint64_t lost;               /* failed requests that never succeeded */
    uint64_t launches[SPW_LAYOUT_COUNT];
    uint64_t small_reads, bulk_reads, bulk_read_bytes; /* the host's reads of results */
    uint64_t chosen;                                   /* sizes that SPILLWAY_SIM_UNKNOWN decided */
    uint64_t known_reads;            /* small reads of results that were computed */
    uint64_t second_half_ns;         /* simulated time of the second half of the kernels; 0: too few
                                      * kernels, or no simulated time */
    uint64_t link_bytes;             /* of host memory that kernels used */
    struct spw_cli_sim_refusal last; /* the latest failure; if lost > 0, of a lost request */
};

/* One process that initialised CUDA. */
struct spw_cli_sim_process {
    int pid;
    char name[SPW_CLI_SIM_NAME];
    bool used;                      /* it used at least one device */
    char runtime[SPW_CLI_SIM_PATH]; /* file that contains NVIDIA's runtime; "": none */
    bool tensors; /* stream-ordered allocations are PyTorch's tensors (mode "tensor") */
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
    size_t left_out;    /* processes beyond SPW_CLI_SIM_PROCESSES */
    size_t lost;        /* processes whose use of devices is not known */
    char problem[1024]; /* the reason for the first lost one; "": not known */
    struct spw_cli_sim_process *processes;
    struct spw_cli_sim_rule rules[SPW_ACCOUNTS];
    size_t rule_count;
    uint64_t lost_requests, overcome;       /* sums over all devices */
    uint64_t host_peak_bytes;               /* the sum of all peaks of memory on the host */
    bool spilled;                           /* a device spilled */
    uint64_t shared_peaks[SPW_DEVICES_MAX]; /* by index of the device: most bytes that all
                                             * processes held together */
};

/* Reads the run directory. Always initialises *ret_result; the caller calls
 * spw_cli_sim_result_fini. */
void spw_cli_sim_result_read(struct spw_cli_sim_result *ret_result);
void spw_cli_sim_result_fini(struct spw_cli_sim_result *result);

/* The device after `device` in the list of all devices of all processes. A `device` of NULL asks
 * for the first one. NULL at the end. */
const struct spw_cli_sim_device *spw_cli_sim_next(const struct spw_cli_sim_result *result,
                                                  const struct spw_cli_sim_device *device);

/* The process of a device, and the ordinal of the device in that process. */
const struct spw_cli_sim_process *spw_cli_sim_process_of(const struct spw_cli_sim_result *result,
                                                         const struct spw_cli_sim_device *device,
                                                         int *ret_ordinal);

/* The device with the latest lost request, which is in `last`; NULL when no request was lost. */
const struct spw_cli_sim_device *
spw_cli_sim_result_failure(const struct spw_cli_sim_result *result);

/* The number of processes that held memory of a device at the peak of all processes together. */
size_t spw_cli_sim_result_sharers(const struct spw_cli_sim_result *result, int index);

/* The outcome of a run. */
enum spw_cli_sim_outcome {
    SPW_CLI_SIM_UNUSED,       /* no process used a device */
    SPW_CLI_SIM_UNRECORDED,   /* the use of devices by a process is not known */
    SPW_CLI_SIM_FITS,         /* the command succeeded; only rules of a policy placed memory on the
                               * host */
    SPW_CLI_SIM_SPILLS,       /* it succeeded by spilling to the host */
    SPW_CLI_SIM_CONTINUED,    /* it succeeded, although a request was lost */
    SPW_CLI_SIM_DOES_NOT_FIT, /* it failed after a request was lost */
    SPW_CLI_SIM_FAILED,       /* it failed for another reason */
};

/* The outcome of the run, whose command ended with exit code `code`. */
enum spw_cli_sim_outcome spw_cli_sim_result_outcome(const struct spw_cli_sim_result *result,
                                                    int code);
