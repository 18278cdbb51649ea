/* Merges the memory use of the ranks of one job, to show which lines of the program differ between
 * ranks. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/usage/usage.h"

/* A device that a rank used. If a process used several devices, there is one entry for each. */
struct spw_cli_rank_usage {
    const struct spw_cli_usage *file;
    const struct spw_cli_device_usage *device;
    int ordinal; /* of the device in its process */
};

/* A line of the program, merged over all ranks. If a rank does not have the line, it counts as 0
 * bytes. */
struct spw_cli_merged_line {
    const struct spw_cli_usage_line *line; /* the line in the rank that held most */
    size_t rank;                           /* the index of that rank */
    size_t holders;                        /* number of ranks that have the line */
    uint64_t least, most, sum;             /* bytes at the ranks' peaks */
};

struct spw_cli_merged_ranks {
    struct spw_cli_rank_usage *ranks; /* sorted by rank; processes without a rank come first */
    size_t rank_count;
    struct spw_cli_merged_line *lines; /* the largest difference between ranks comes first */
    size_t line_count;
};

/* Merges the used devices of `count` files. The files must outlive the result. The caller frees the
 * result. Returns false if memory runs out. */
bool spw_cli_ranks_merge(const struct spw_cli_usage *files, size_t count,
                         struct spw_cli_merged_ranks *ret_merged);
void spw_cli_ranks_free(struct spw_cli_merged_ranks *merged);

/* Prints a table of the ranks and a table of the first `top` lines. */
void spw_cli_ranks_print_text(const struct spw_cli_merged_ranks *merged, size_t top);

/* Prints one JSON object with all lines. */
void spw_cli_ranks_print_json(const struct spw_cli_merged_ranks *merged);
