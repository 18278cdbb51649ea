/* Merges the memory of the ranks of one job, to show the lines of the program that differ. One
 * thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/usage/usage.h"

/* A device that a rank used. A process that used several devices has several of these. */
struct spw_cli_rank_usage {
    const struct spw_cli_usage *file;
    const struct spw_cli_device_usage *device;
    int ordinal; /* of the device in its process */
};

/* A line of the program, over all ranks. A rank without it counts as 0 bytes. */
struct spw_cli_merged_line {
    const struct spw_cli_usage_line *line; /* of the rank that held most */
    size_t rank;                           /* the index of that rank */
    size_t holders;                        /* ranks that have the line */
    uint64_t least, most, sum;             /* bytes at the ranks' peaks */
};

struct spw_cli_merged_ranks {
    struct spw_cli_rank_usage *ranks; /* by rank, after processes without a rank */
    size_t rank_count;
    struct spw_cli_merged_line *lines; /* the largest difference between ranks first */
    size_t line_count;
};

/* Merges the used devices of `count` files, which must outlive the result. The caller frees
 * the result. False without memory. */
bool spw_cli_ranks_merge(const struct spw_cli_usage *files, size_t count,
                         struct spw_cli_merged_ranks *ret_merged);
void spw_cli_ranks_free(struct spw_cli_merged_ranks *merged);

/* Prints tables of the ranks and of `top` lines. */
void spw_cli_ranks_print_text(const struct spw_cli_merged_ranks *merged, size_t top);

/* Prints one JSON object with all lines. */
void spw_cli_ranks_print_json(const struct spw_cli_merged_ranks *merged);
