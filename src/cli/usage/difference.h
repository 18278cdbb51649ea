/* Matches the lines of two runs of a program. Equal lines are matched first. Then come lines of the
 * same functions whose numbers differ, because code above them changed. No locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/usage/usage.h"

/* A line in the earlier and in the later run. NULL: that run does not have the line. */
struct spw_cli_pair {
    const struct spw_cli_usage_line *before, *after;
};

/* Matches the lines of a device. The pair with the largest change at the peak comes first. `before`
 * or `after` is NULL if that run did not use the device. The caller frees *ret_pairs. False without
 * memory. */
bool spw_cli_pair_lines(const struct spw_cli_device_usage *before,
                        const struct spw_cli_device_usage *after, struct spw_cli_pair **ret_pairs,
                        size_t *ret_count);

/* _change: the growth of a line in bytes at the peak (negative: it shrank). _moved: true if the
 * line has moved in the source. _label: the label of the line, from the later run if that has it.
 */
int64_t spw_cli_pair_change(const struct spw_cli_pair *pair);
bool spw_cli_pair_moved(const struct spw_cli_pair *pair);
const char *spw_cli_pair_label(const struct spw_cli_pair *pair);

/* Print the difference on stdout. _print prints the peak of each device, its categories if both
 * runs have them, and the `top` lines with the largest differences at the peak. _print_json prints
 * one JSON object with all lines. False without memory. */
bool spw_cli_difference_print(const struct spw_cli_usage *before, const struct spw_cli_usage *after,
                              size_t top);
bool spw_cli_difference_print_json(const struct spw_cli_usage *before,
                                   const struct spw_cli_usage *after);
