/* `spillway sim --compare`: the memory that a command needs with and without the pool. One thread.
 */
#pragma once

#include "cli/verdict/trial.h"

/* Runs `arguments` without the pool and with it, each again with ample memory if it did not fit,
 * and then, without output, on smaller devices. Writes the outcome of each run, the peaks, and the
 * smallest size that worked to stderr. Returns the exit code of the first run with the pool. */
int spw_cli_compare(const char *command, char **arguments, spw_cli_prepare *prepare);
