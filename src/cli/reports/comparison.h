/* `spillway sim --compare`: the memory that a command needs with and without the pool. One thread.
 */
#pragma once

#include <stdbool.h>

/* Prepares the environment for a run on the simulated GPU, with the pool or without it. False, with
 * one line of `command` on stderr, when a library is missing. */
typedef bool spw_cli_compare_prepare(const char *command, bool with_pool);

/* Runs `arguments` without the pool and with it, then with ample memory where they did not fit, and
 * then, without output, on smaller and smaller devices. Writes to stderr how each run came out, the
 * peaks, and the smallest size that worked. Returns the exit code of the first run with the pool.
 */
int spw_cli_compare(const char *command, char **arguments, spw_cli_compare_prepare *prepare);
