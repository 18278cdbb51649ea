/* The verdict of a simulated run: lines on stderr. One thread. */
#pragma once

#include "cli/reports/sim_result.h"

/* Prints whether the command fits, and its need of memory. `code`: its exit code. */
void spw_cli_verdict_print(const struct spw_cli_sim_result *result, int code, bool verbose);

/* Prints a line for each device whose memory several processes held at the same time. */
void spw_cli_verdict_shared(const struct spw_cli_sim_result *result);
