/* The lines of two runs of a program, matched: first those that are the same, then those of the
 * same functions whose line numbers differ, since code above them was changed. No locking. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/reports/usage.h"

/* A line before and after. One may be NULL: the line is in the other run only. */
struct spw_cli_pair {
    const struct spw_cli_line *before, *after;
};

/* Matches the lines of a device; those come first whose bytes at the peak differ most. Either
 * device may be NULL: it was not there. The caller frees *ret_pairs. False without memory. */
bool spw_cli_pair_lines(const struct spw_cli_device_usage *before,
                        const struct spw_cli_device_usage *after, struct spw_cli_pair **ret_pairs,
                        size_t *ret_count);

/* Bytes at the peak by which a line grew; negative: it shrank. */
int64_t spw_cli_pair_change(const struct spw_cli_pair *pair);

/* The line stands at another place than before. */
bool spw_cli_pair_moved(const struct spw_cli_pair *pair);

/* The label of the line, after if there is one. */
const char *spw_cli_pair_label(const struct spw_cli_pair *pair);
