/* The verdict of a simulated run: lines on stderr. One thread. */
#pragma once

#include "cli/reports/sim_result.h"

/* Prints if the command, which ended with exit code `code`, fits, and the memory that it needed. */
void spw_cli_verdict_print(const struct spw_cli_sim_result *result, int code, bool verbose);

/* Prints a line for each device that several processes held memory of at the same time. */
void spw_cli_verdict_shared(const struct spw_cli_sim_result *result);
