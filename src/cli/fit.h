/* What the processes of a simulated run did on their devices, put together from the run folder: the
 * records of the simulated driver and, where the pool was in front of it, the pool's statistics.
 *
 * Read when the command has ended. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/devices.h"
#include "common/layout.h"

enum { SPW_FIT_PROCESSES = 256, SPW_FIT_NAME = 128 };

/* What a request was refused for. */
enum spw_fit_lack {
    SPW_FIT_LACK_NOTHING, /* not for want of memory: an injected failure, or no address space */
    SPW_FIT_LACK_DEVICE,
    SPW_FIT_LACK_HOST,
};

/* A request that was answered out of memory. */
struct spw_fit_refusal {
    uint64_t number; /* among the allocations asked of the device, from 1; 0: no allocation */
    uint64_t bytes;  /* asked for */
    uint64_t missing_bytes; /* with DEVICE, 0: enough was free, but in pieces */
    bool at_least;          /* the device lacked more than missing_bytes, but not known how much */
    uint64_t time_ns;
    enum spw_fit_lack lack;
    bool overcome; /* the same was granted later */
    int tid;
    char api[64]; /* without the suffix of its version */
    char thread[16];
};

struct spw_fit_device {
    bool used;
    bool pooled;                 /* the pool served it */
    uint64_t total_bytes;        /* what may be used at most: with a pool, its limit */
    uint64_t live_peak_bytes;    /* what the program held at most, in multiples of 512 bytes */
    uint64_t ordered_peak_bytes; /* pooled: of it what was allocated on streams */
    uint64_t used_peak_bytes;    /* taken from the device at most */
    uint64_t own_peak_bytes;     /* of it at most for code, local memory and graphs */
    uint64_t host_peak_bytes;    /* spilled at most */
    uint64_t refusals;
    uint64_t launches[SPW_LAYOUT_COUNT];
    uint64_t small_reads, bulk_reads, bulk_read_bytes;
    struct spw_fit_refusal last; /* of the refusals */
};

/* One process that initialised CUDA. */
struct spw_fit_process {
    int pid;
    char name[SPW_FIT_NAME];
    bool used;    /* any device */
    bool tensors; /* what PyTorch allocates on streams are its tensors, each by itself */
    int device_count;
    struct spw_fit_device devices[SPW_DEVICES_MAX];
};

struct spw_fit {
    size_t count;
    size_t left_out; /* processes there was no room for */
    struct spw_fit_process *processes;
};

/* Reads the run folder (rundir.h). Freed by spw_fit_fini, whatever comes out. */
void spw_fit_read(struct spw_fit *ret_fit);
void spw_fit_fini(struct spw_fit *fit);

/* The latest refusal that was not overcome, and where; NULL when there is none. */
const struct spw_fit_refusal *spw_fit_failure(const struct spw_fit *fit,
                                              const struct spw_fit_process **ret_process,
                                              int *ret_ordinal);

/* How a run came out. */
enum spw_fit_outcome {
    SPW_FIT_UNUSED,       /* no process used a device */
    SPW_FIT_FITS,         /* the command succeeded */
    SPW_FIT_DOES_NOT_FIT, /* it failed, and a request of it was refused for good */
    SPW_FIT_FAILED,       /* it failed for another reason */
};

/* What the host held at most of all that the program held, in bytes. */
uint64_t spw_fit_host_peak(const struct spw_fit *fit);

/* How the run came out whose command ended with exit code `code`. */
enum spw_fit_outcome spw_fit_judge(const struct spw_fit *fit, int code);
