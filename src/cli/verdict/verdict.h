/* Verdicts: simulated runs, their results, and the cards on which a program fits. It does not know
 * recordings.
 *
 *   cards          the cards that a simulated device stands for, and a table of all
 *   comparison     memory that a command needs with and without the pool
 *   need           memory that a card needs for a program
 *   outcome        the result of a simulated run in one line
 *   progress       a line of progress every ten seconds
 *   ranks          a table of ranks that ran one after the other
 *   sim_result     the results that a simulated run left in its run directory
 *   trial          runs a command on simulated devices, with settings of each run
 *   verdict        the verdict of a simulated run, as lines
 *   verdict_json   the verdict of a simulated run, as JSON
 *
 * The verdict is printed on stderr. One thread. */
#pragma once

#include "cli/verdict/sim_result.h"

/* Prints whether the command fits, and its need of memory. `code`: its exit code. */
void spw_cli_verdict_print(const struct spw_cli_sim_result *result, int code, bool verbose);

/* Prints a line for each device whose memory several processes held at the same time. */
void spw_cli_verdict_shared(const struct spw_cli_sim_result *result);
