/* Prints the difference of two runs to stdout. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/usage/usage.h"

/* Prints the peak of each device, its categories if both runs have them, and the `top` lines with
 * the largest differences at the peak. False without memory. */
bool spw_cli_difference_print(const struct spw_cli_usage *before, const struct spw_cli_usage *after,
                              size_t top);

/* Prints the difference with all lines, as one JSON object. */
bool spw_cli_difference_print_json(const struct spw_cli_usage *before,
                                   const struct spw_cli_usage *after);
