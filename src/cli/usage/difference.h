/* Matches the source lines of two runs of a program. Lines that are equal in both runs are matched
 * first. The remaining lines are matched if they have the same functions but different line
 * numbers, because code above them has changed. No locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/usage/usage.h"

/* A line in the earlier run (`before`) and in the later run (`after`). A pointer is NULL if its run
 * does not have the line. */
struct spw_cli_pair {
    const struct spw_cli_usage_line *before, *after;
};

/* Matches the lines of a device. The pair with the largest change at the peak comes first. `before`
 * is NULL if the earlier run did not use the device, and `after` is NULL if the later run did not
 * use it. The caller frees *ret_pairs. Returns false if memory runs out. */
bool spw_cli_pair_lines(const struct spw_cli_device_usage *before,
                        const struct spw_cli_device_usage *after, struct spw_cli_pair **ret_pairs,
                        size_t *ret_count);

/* _change returns how many bytes a line grew at the peak; the result is negative if the line
 * shrank. _moved returns true if the line has moved in the source. _label returns the label of the
 * line in the later run, or in the earlier run if the later run does not have the line. */
int64_t spw_cli_pair_change(const struct spw_cli_pair *pair);
bool spw_cli_pair_moved(const struct spw_cli_pair *pair);
const char *spw_cli_pair_label(const struct spw_cli_pair *pair);

/* Print the difference to stdout. _print prints the peak of each device and the `top` lines with
 * the largest differences at the peak. If both runs have categories, it prints them as well.
 * _print_json prints one JSON object with all lines. Returns false if memory runs out. */
bool spw_cli_difference_print(const struct spw_cli_usage *before, const struct spw_cli_usage *after,
                              size_t top);
bool spw_cli_difference_print_json(const struct spw_cli_usage *before,
                                   const struct spw_cli_usage *after);
