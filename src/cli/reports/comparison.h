/* `spillway sim --compare`: the command bare and under the pool, and the smallest device for each.
 */
#pragma once

#include <stdbool.h>

/* Prepares the environment for a run on the simulated GPU, with the pool or bare. False, with one
 * line on stderr, when a library is missing. */
typedef bool spw_cli_compare_prepare(const char *subcommand, bool with_pool);

/* Runs the command bare, then under the pool, again with memory in plenty where it did not fit, and
 * then, its output dropped, on smaller and smaller devices. Says on stderr how each run came out,
 * both peaks and the smallest device that did. Returns the exit code of the run under the pool. */
int spw_cli_compare(const char *subcommand, char **command, spw_cli_compare_prepare *prepare);
