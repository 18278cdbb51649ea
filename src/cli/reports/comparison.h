/* `spillway sim --compare`: the memory that a command needs with and without the pool. One thread.
 */
#pragma once

#include "cli/reports/trial.h"

/* Runs `arguments` without the pool and with it, then with ample memory where they did not fit, and
 * then, without output, on smaller and smaller devices. Writes to stderr how each run came out, the
 * peaks, and the smallest size that worked. Returns the exit code of the first run with the pool.
 */
int spw_cli_compare(const char *command, char **arguments, spw_cli_prepare *prepare);
