/* What the readers of a recording (reader.c, passes.c) share: the state of a reading, its lists
 * and the live blocks. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/advise/history.h"
#include "common/hash.h"

enum { SPW_CLI_ADVISE_DEPTH = 8 }; /* the most modules inside each other */

/* A module that the recording marks. */
struct spw_cli_advise_marked {
    char *name;
    unsigned depth;
    bool is_outer; /* it contains marked modules */
};

struct spw_cli_advise_live {
    uint64_t address, bytes;
    size_t life; /* index in the history's lives */
};

/* The recording is read twice. The first reading, a survey, only counts. The second takes every
 * event. */
struct spw_cli_advise_reading {
    struct spw_cli_advise_history *history;
    bool surveys;
    struct spw_map numbers;           /* indexes of kinds, by a hash of site and size */
    struct spw_cli_advise_live *live; /* sorted by address */
    size_t live_count, live_capacity;
    uint32_t *sequence; /* sites of the large allocations; from the survey */
    size_t sequence_capacity;
    size_t large;        /* allocations so far */
    size_t large_before; /* large allocations before the second half */
    size_t period;       /* in large allocations; 0: none */
    uint64_t kernels, half;
    uint64_t half_time, end_time;
    uint64_t marks;    /* of steps in the second half */
    bool *is_backward; /* by thread */
    size_t thread_capacity;
    unsigned depth;                       /* of the modules that the history takes */
    struct spw_cli_advise_marked *marked; /* from the survey */
    size_t marked_count, marked_capacity;
    unsigned open;                      /* survey: the number of open marks */
    size_t outer[SPW_CLI_ADVISE_DEPTH]; /* survey: their modules, the first ones */
    uint32_t pass, ended; /* the open forward pass of a module, and the one that has just ended, or
                           * SPW_CLI_ADVISE_NONE */
    double kernel_ns, *module_ns; /* time of the second half's kernels: of all, of each module */
    size_t module_ns_capacity;
};

/* Grows the list *list, so that it has an element at `index`. Returns false if memory runs out. */
bool spw_cli_advise_reserve(struct spw_cli_advise_history *history, void *list, size_t index,
                            size_t *capacity, size_t bytes);

/* Adds a block, which is live from now on. */
void spw_cli_advise_add_live(struct spw_cli_advise_reading *reading,
                             const struct spw_cli_advise_live *block);

/* Returns the live block that contains an address, or NULL. */
struct spw_cli_advise_live *spw_cli_advise_find_live(const struct spw_cli_advise_reading *reading,
                                                     uint64_t address);

/* Returns true for a thread of the backward pass. */
bool spw_cli_advise_is_backward(const struct spw_cli_advise_reading *reading, uint32_t thread);

/* Returns true in the second half of the run: the figures of a step are its averages. */
bool spw_cli_advise_is_in_second_half(const struct spw_cli_advise_reading *reading);

/* Returns true if the text begins with `prefix`. */
bool spw_cli_advise_begins_with(const struct spw_cli_text *text, const char *prefix);
