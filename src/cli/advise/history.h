/* A recording, as `spillway advise` needs it (reader.h reads it). For each kind of allocation,
 * it has the device memory that the kind held at each moment, and how often calls used this
 * memory. A kind is a call site and a size, as in rules. Only the device with the highest peak
 * is read. One thread.
 *
 * If the program marks its steps, the marks define the steps. Otherwise steps are found as
 * repetitions of the program's large allocations. The figures of a step are averages over the
 * second half of the run, because the first steps differ. Half of the run is half of its
 * kernels. Without recorded uses, it is half of the large allocations.
 *
 * If the recording has the forward passes of modules (SPILLWAY_RECORD_MODULES), the history
 * also has the memory that a pass saves for backward. The pass allocates this memory and does
 * not return it, and the backward pass frees it. A recomputed module frees it at the end of its
 * forward pass, and allocates it again when the backward pass reaches the module. It keeps its
 * arguments until then. A marked module may contain other marked modules, as a stage contains
 * layers. A history has only modules of one depth. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/report/report.h"

#define SPW_CLI_ADVISE_NONE UINT32_MAX

/* Smaller allocations have no kind, because they share chunks. */
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
    uint32_t life; /* index; SPW_CLI_ADVISE_NONE: neither large nor of a module's pass */
    int64_t bytes; /* bytes that count as live on the device; negative for a free */
};

/* A large block, or any block of the pool that is allocated during the forward pass of a module. */
struct spw_cli_advise_life {
    uint32_t kind;
    uint32_t pass; /* during which it was allocated; SPW_CLI_ADVISE_NONE: none */
    bool by_backward, freed_by_backward; /* on a thread of the backward pass */
    bool is_output;                      /* its pass returns it */
    bool is_saved;                       /* by its pass, for backward */
    uint32_t keeper; /* a pass with this argument, which keeps it longer if it is recomputed;
                      * SPW_CLI_ADVISE_NONE: none */
    size_t first_change, last_change; /* of the allocation and the free; SIZE_MAX: not freed */
    size_t born, died;                /* position in the run, counted in large allocations */
};

/* A module whose forward passes the recording has. */
struct spw_cli_advise_module {
    char *name;   /* as in the rules of a policy */
    double share; /* its forward passes, as a share of a step's kernel time */
};

/* A forward pass of a module. */
struct spw_cli_advise_pass {
    uint32_t module;
    uint64_t number;                  /* in the recording; 0: not known */
    size_t first_change, last_change; /* the changes during the pass: [first, last) */
    size_t again_change; /* the backward pass reaches the module before it; SIZE_MAX: never */
    size_t done_change;  /* the last saved memory was freed before it; 0: none */
    uint64_t work_bytes; /* most memory of its own blocks during the pass, without outputs */
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
    struct spw_cli_advise_module *modules;
    size_t module_count, module_capacity;
    unsigned depth;                     /* of marked modules: 0 if none contains another */
    struct spw_cli_advise_pass *passes; /* in the order of their begin */
    size_t pass_count, pass_capacity;
    uint64_t peak;      /* highest live bytes on the device */
    size_t peak_change; /* index of the change that reached it */
    bool has_uses;      /* the recording has uses by calls (--record-uses on) */
    double steps;       /* in the second half; 0: not known */
    bool marked;        /* the program marked its steps */
    uint64_t step_ns; /* time of a step in the second half, by the clock of the run; 0: not known */
    uint64_t kernel_ns; /* time of a step's kernels, by the bytes that they touch; 0: not known */
    bool simulated;     /* the run's clock is that of a simulated GPU, not of a card */
    bool out_of_memory; /* this command lacked memory (not the program) */
};

/* Returns the bytes of a kind that a step allocates. */
static inline double spw_cli_advise_history_allocated(const struct spw_cli_advise_history *history,
                                                      const struct spw_cli_advise_kind *kind)
{
    return (double)kind->allocs * (double)kind->bytes / (history->steps > 0 ? history->steps : 1);
}
