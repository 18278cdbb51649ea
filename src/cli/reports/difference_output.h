/* The difference of two runs, printed to stdout. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/reports/usage.h"

/* The peak of each device, the categories at it if both runs have them, and the `top` lines whose
 * bytes at the peak differ most. False without memory. */
bool spw_cli_difference_print(const struct spw_cli_usage *before, const struct spw_cli_usage *after,
                              size_t top);

/* The same as one JSON object, with all lines. */
bool spw_cli_difference_print_json(const struct spw_cli_usage *before,
                                   const struct spw_cli_usage *after);
