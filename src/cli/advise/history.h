/* Reads a recording for `spillway advise`. For each kind of allocation, it finds how much device
 * memory the kind held at each moment, and how often calls used this memory. A kind is a call site
 * and a size, as in rules. Only the device with the highest peak is read. One thread.
 *
 * If the program marks its steps, the marks define the steps. Otherwise steps are found as
 * repetitions of the program's large allocations. The figures of a step are averages over the
 * second half of the run, so that the first steps do not count. The half of the run is counted in
 * kernels. If the recording has no uses, the half is counted in large allocations. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/report/report.h"

/* Smaller allocations do not get kinds of their own, because they share chunks. */
enum { SPW_CLI_ADVISE_LEAST = 1 << 20 };

struct spw_cli_advise_kind {
    uint32_t site;       /* as in cli/recording/sites.h */
    uint64_t bytes;      /* size of an allocation */
    uint64_t uses;       /* number of uses by calls in the second half */
    uint64_t link_bytes; /* bytes over the link for these uses, if the kind is on the host */
    uint64_t allocs;     /* in the second half */
    uint64_t at_peak;    /* bytes held at the device's peak */
    uint64_t kept;       /* part of at_peak: blocks that outlive a step */
    uint64_t saved;   /* part of at_peak: blocks freed, but not allocated, by the backward pass */
    bool by_backward; /* allocated on a thread of the backward pass */
    bool outlives;    /* a block allocated in the second half outlives a step */
    bool renewed;     /* blocks are allocated in the second half */
};

/* An allocation or a free. */
struct spw_cli_advise_change {
    uint32_t kind; /* index; 0: smaller than SPW_CLI_ADVISE_LEAST, or not from the pool */
    int64_t bytes; /* bytes that count as live on the device; negative for a free */
};

/* A large block. */
struct spw_cli_advise_life {
    uint32_t kind;
    bool by_backward, freed_by_backward; /* on a thread of the backward pass */
    size_t first_change, last_change;    /* of the allocation and the free; SIZE_MAX: not freed */
    size_t born, died;                   /* position in the run, counted in large allocations */
};

struct spw_cli_advise_history {
    struct spw_cli_report report;
    int device;
    bool several;                      /* the program used other devices as well */
    struct spw_cli_advise_kind *kinds; /* [0] stands for all other allocations */
    size_t kind_count, kind_capacity;
    struct spw_cli_advise_change *changes;
    size_t change_count, change_capacity;
    struct spw_cli_advise_life *lives;
    size_t life_count, life_capacity;
    uint64_t peak;      /* highest live bytes on the device */
    size_t peak_change; /* index of the change that reached it */
    bool has_uses;      /* the recording has uses by calls (--record-uses on) */
    double steps;       /* in the second half; 0: not known */
    bool marked;        /* the program marked its steps */
    uint64_t step_ns; /* time of a step in the second half, by the clock of the run; 0: not known */
    bool simulated;   /* the run's clock is that of a simulated GPU, not of a card */
    bool out_of_memory; /* this command lacked memory (not the program) */
};

/* Returns the bytes of a kind that a step allocates. */
static inline double spw_cli_advise_history_allocated(const struct spw_cli_advise_history *history,
                                                      const struct spw_cli_advise_kind *kind)
{
    return (double)kind->allocs * (double)kind->bytes / (history->steps > 0 ? history->steps : 1);
}

/* Reads a recording. On failure, writes a line to stderr and returns false. On success, the caller
 * closes *history. */
bool spw_cli_advise_history_open(struct spw_cli_advise_history *history, const char *command,
                                 const char *path);
void spw_cli_advise_history_close(struct spw_cli_advise_history *history);

/* The peaks of device and host memory, and the indexes of the changes that reached the peaks. */
struct spw_cli_advise_extent {
    uint64_t device_bytes, host_bytes;
    size_t device_change, host_change;
};

/* Computes the peaks if some memory is on the host. `host_bytes` gives, for each kind, the bytes of
 * a block that are on the host. NULL: no memory is on the host. */
struct spw_cli_advise_extent
spw_cli_advise_history_extent(const struct spw_cli_advise_history *history,
                              const uint64_t *host_bytes);

/* Writes the bytes that each kind holds after the change with index `change`. */
void spw_cli_advise_history_at(const struct spw_cli_advise_history *history, size_t change,
                               uint64_t *ret_bytes);
