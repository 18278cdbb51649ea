/* What the processes of a simulated run did on their devices, put together from the run folder: the
 * records of the simulated driver and, where the pool was in front of it, the pool's statistics.
 *
 * Read when the command has ended. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_CLI_SIM_PROCESSES = 256, SPW_CLI_SIM_DEVICES = 64, SPW_CLI_SIM_NAME = 128 };

/* Where the layout of a launch's arguments was known from. */
enum spw_cli_sim_layout {
    SPW_CLI_SIM_LAYOUT_UNKNOWN,
    SPW_CLI_SIM_LAYOUT_BUILTIN, /* a kernel of the simulated GPU's own libraries */
    SPW_CLI_SIM_LAYOUT_PTX,
    SPW_CLI_SIM_LAYOUT_NAME, /* the types in the kernel's name */
    SPW_CLI_SIM_LAYOUT_CODE,
    SPW_CLI_SIM_LAYOUT_STRUCTS, /* the code, but addresses are in structs only, and not checked */
    SPW_CLI_SIM_LAYOUTS,
};

/* What a request was refused for. */
enum spw_cli_sim_lack {
    SPW_CLI_SIM_LACK_NOTHING, /* not for want of memory: an injected failure, or no address space */
    SPW_CLI_SIM_LACK_DEVICE,
    SPW_CLI_SIM_LACK_HOST,
};

/* A request that was answered out of memory. */
struct spw_cli_sim_refusal {
    uint64_t number; /* among the allocations asked of the device, from 1; 0: no allocation */
    uint64_t bytes;  /* asked for */
    uint64_t missing_bytes; /* with DEVICE, 0: enough was free, but in pieces */
    bool at_least;          /* the device lacked more than missing_bytes, but not known how much */
    uint64_t time_ns;
    enum spw_cli_sim_lack lack;
    bool overcome; /* the same was granted later */
    int tid;
    char api[64]; /* without the suffix of its version */
    char thread[16];
};

struct spw_cli_sim_device {
    bool used;
    bool pooled;                 /* the pool served it */
    uint64_t total_bytes;        /* what may be used at most: with a pool, its limit */
    uint64_t live_peak_bytes;    /* what the program held at most, in multiples of 512 bytes */
    uint64_t ordered_peak_bytes; /* pooled: of it what was allocated on streams */
    uint64_t used_peak_bytes;    /* taken from the device at most */
    uint64_t own_peak_bytes;     /* of it at most for code, local memory and graphs */
    uint64_t host_peak_bytes;    /* spilled at most */
    uint64_t refusals;
    uint64_t launches[SPW_CLI_SIM_LAYOUTS];
    uint64_t small_reads, bulk_reads, bulk_read_bytes;
    struct spw_cli_sim_refusal last; /* of the refusals */
};

/* One process that initialised CUDA. */
struct spw_cli_sim_process {
    int pid;
    char name[SPW_CLI_SIM_NAME];
    bool used;    /* any device */
    bool tensors; /* what PyTorch allocates on streams are its tensors, each by itself */
    int device_count;
    struct spw_cli_sim_device devices[SPW_CLI_SIM_DEVICES];
};

struct spw_cli_sim_result {
    size_t count;
    size_t left_out; /* processes there was no room for */
    struct spw_cli_sim_process *processes;
};

/* Reads the run folder (rundir.h). Freed by spw_cli_sim_result_fini, whatever comes out. */
void spw_cli_sim_result_read(struct spw_cli_sim_result *ret_fit);
void spw_cli_sim_result_fini(struct spw_cli_sim_result *fit);

/* The latest refusal that was not overcome, and where; NULL when there is none. */
const struct spw_cli_sim_refusal *
spw_cli_sim_result_failure(const struct spw_cli_sim_result *fit,
                           const struct spw_cli_sim_process **ret_process, int *ret_ordinal);

/* How a run came out. */
enum spw_cli_sim_outcome {
    SPW_CLI_SIM_UNUSED,       /* no process used a device */
    SPW_CLI_SIM_FITS,         /* the command succeeded */
    SPW_CLI_SIM_DOES_NOT_FIT, /* it failed, and a request of it was refused for good */
    SPW_CLI_SIM_FAILED,       /* it failed for another reason */
};

/* What the host held at most of all that the program held, in bytes. */
uint64_t spw_cli_sim_result_host_peak(const struct spw_cli_sim_result *fit);

/* How the run came out whose command ended with exit code `code`. */
enum spw_cli_sim_outcome spw_cli_sim_result_outcome(const struct spw_cli_sim_result *fit, int code);
