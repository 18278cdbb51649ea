/* The page that `spillway run --report` and `spillway sim --report` write when the program has
 * ended. One thread. */
#pragma once

#include "cli/launch/flags.h"

/* Prepares the recording of the program. Call it before the environment changes for the program.
 * If the page cannot be written, writes a line to stderr and returns a code for the end of the
 * command. Returns SPW_CLI_EXIT_OK otherwise, also if the user wants no page. */
int spw_cli_page_prepare(const char *command, const struct spw_cli_flags *flags);

/* Writes the page of all recordings of the run, prints its path, and opens it with --open. Call it
 * after the last run. `exit_code` is that of the program. */
void spw_cli_page_finish(const char *command, const struct spw_cli_flags *flags, int exit_code);
