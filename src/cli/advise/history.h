/* Reads a recording for advice: the device memory that each kind of allocation held, moment by
 * moment, and how often calls used that memory. A kind is a call site and a size, as in rules. Only
 * the device with the highest peak is read. One thread.
 *
 * Steps are found by the program's marks or, without marks, by repetitions of its large
 * allocations. Figures of a step are means over the second half of the run, so that the first steps
 * do not count. Halves are counted in kernels or, without recorded uses, in large allocations. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/report/report.h"

/* Smaller allocations have no kinds of their own: they share chunks. */
enum { SPW_CLI_ADVISE_LEAST = 1 << 20 };

struct spw_cli_advise_kind {
    uint32_t site;       /* as in cli/recording/sites.h */
    uint64_t bytes;      /* of an allocation */
    uint64_t uses;       /* by calls in the second half */
    uint64_t link_bytes; /* over the link for these uses, if on the host */
    uint64_t allocs;     /* in the second half */
    uint64_t at_peak;    /* bytes held at the device's peak */
    uint64_t kept;       /* part of at_peak: blocks that outlive a step */
    uint64_t saved;      /* part of at_peak: not made by the backward pass, but freed by it */
    bool by_backward;    /* allocated on a thread of the backward pass */
    bool outlives;       /* a block that begins in the second half outlives a step */
    bool renewed;        /* blocks begin in the second half */
};

/* An allocation or a free. */
struct spw_cli_advise_change {
    uint32_t kind; /* index; 0: smaller than SPW_CLI_ADVISE_LEAST, or not from the pool */
    int64_t bytes; /* counted as live on the device; negative for a free */
};

/* A large block. */
struct spw_cli_advise_life {
    uint32_t kind;
    bool by_backward, freed_by_backward; /* on a thread of the backward pass */
    size_t first_change, last_change;    /* its allocation and free; SIZE_MAX: not freed */
    size_t born, died;                   /* counted in large allocations */
};

struct spw_cli_advise_history {
    struct spw_cli_report report;
    int device;
    bool several;                      /* other devices were used as well */
    struct spw_cli_advise_kind *kinds; /* [0] stands for all other allocations */
    size_t kind_count, kind_capacity;
    struct spw_cli_advise_change *changes;
    size_t change_count, change_capacity;
    struct spw_cli_advise_life *lives;
    size_t life_count, life_capacity;
    uint64_t peak;      /* most bytes live on the device at once */
    size_t peak_change; /* index of the change that reached it */
    bool has_uses;      /* the recording has uses by calls (--record-uses on) */
    double steps;       /* in the second half; 0: not known */
    bool marked;        /* the program marked its steps */
    uint64_t step_ns;   /* a step in the second half, by the clock of the run; 0: not known */
    bool simulated;     /* the run's clock is that of a simulated GPU, not of a card */
    bool out_of_memory; /* this command lacked memory (not the program) */
};

/* The bytes of a kind that a step allocates. */
static inline double spw_cli_advise_history_allocated(const struct spw_cli_advise_history *history,
                                                      const struct spw_cli_advise_kind *kind)
{
    return (double)kind->allocs * (double)kind->bytes / (history->steps > 0 ? history->steps : 1);
}

/* Reads a recording. False after a line on stderr; if true, the caller closes it. */
bool spw_cli_advise_history_open(struct spw_cli_advise_history *history, const char *command,
                                 const char *path);
void spw_cli_advise_history_close(struct spw_cli_advise_history *history);

/* The peaks of device and host memory, and the indexes of the changes that reached them. */
struct spw_cli_advise_extent {
    uint64_t device_bytes, host_bytes;
    size_t device_change, host_change;
};

/* `host_bytes`: for each kind, the bytes of a block that are on the host; NULL: none. */
struct spw_cli_advise_extent
spw_cli_advise_history_extent(const struct spw_cli_advise_history *history,
                              const uint64_t *host_bytes);

/* Writes the bytes that each kind holds after a change. */
void spw_cli_advise_history_at(const struct spw_cli_advise_history *history, size_t change,
                               uint64_t *ret_bytes);
