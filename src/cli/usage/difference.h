/* Matches the lines of two runs of a program: first equal lines, then lines of the same functions
 * with other line numbers, after a change of code above them. No locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/usage/usage.h"

/* A line before and after. One may be NULL: the line is only in the other run. */
struct spw_cli_pair {
    const struct spw_cli_usage_line *before, *after;
};

/* Matches the lines of a device, the largest change at the peak first. `before` or `after` is NULL
 * if that run did not use the device. The caller frees *ret_pairs. False without memory. */
bool spw_cli_pair_lines(const struct spw_cli_device_usage *before,
                        const struct spw_cli_device_usage *after, struct spw_cli_pair **ret_pairs,
                        size_t *ret_count);

/* The growth of a line in bytes at the peak (negative: it shrank); true if the line has moved in
 * the source; the label of the line, in the later run if it is there. */
int64_t spw_cli_pair_change(const struct spw_cli_pair *pair);
bool spw_cli_pair_moved(const struct spw_cli_pair *pair);
const char *spw_cli_pair_label(const struct spw_cli_pair *pair);

/* Print, on stdout, the peak of each device, its categories if both runs have them, and the `top`
 * lines with the largest differences at the peak; the difference with all lines, as one JSON
 * object. False without memory. */
bool spw_cli_difference_print(const struct spw_cli_usage *before, const struct spw_cli_usage *after,
                              size_t top);
bool spw_cli_difference_print_json(const struct spw_cli_usage *before,
                                   const struct spw_cli_usage *after);
