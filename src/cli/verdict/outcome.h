/* The outcome of a simulated run, in one line on stderr. One thread. */
#pragma once

#include "cli/verdict/sim_result.h"

/* Prints "spillway: LABEL: fits in 8 GiB, ..." for a run whose command ended with exit code `code`.
 */
void spw_cli_outcome_print(const struct spw_cli_sim_result *result, int code, const char *label);
