/* Verdicts: simulated runs, their results, and the cards that a program fits on. It does not know
 * recordings.
 *
 *   brief          the verdict of a run in three lines of at most 80 columns
 *   cards          the cards that a simulated device stands for, and a table of all cards
 *   comparison     memory that a command needs with and without the pool
 *   need           memory that a card needs for a program
 *   outcome        the result of a simulated run in one line
 *   outputs        declares the lines, the JSON and the comparison
 *   progress       a line of progress every ten seconds
 *   ranks          a table of ranks that ran one after the other
 *   sim_result     the results that a simulated run left in its run directory
 *   step           the time of a step, as a range
 *   trial          runs a command on simulated devices, with settings for each run
 *   verdict        the verdict of a simulated run, with details
 *   verdict_json   the verdict of a simulated run, as JSON
 *
 * The verdict is printed to stderr. One thread. */
#pragma once

#include <cjson/cJSON.h>

#include "cli/verdict/cards.h"
#include "cli/verdict/sim_result.h"
#include "cli/verdict/trial.h"

/* Print the result of a run whose command ended with exit code `code`. spw_cli_outcome_print prints
 * one line in full, "spillway: LABEL: fits in 8 GiB, ...". spw_cli_brief_print prints three lines
 * of at most 80 columns: the outcome, what held the peak, and what to do next. With `in_full`, the
 * first of them is that of spw_cli_outcome_print. spw_cli_verdict_print prints these three lines
 * and, with `verbose`, all details of the memory that the command needs. */
void spw_cli_outcome_print(const struct spw_cli_sim_result *result, int code, const char *label);
void spw_cli_brief_print(const struct spw_cli_sim_result *result, int code, bool in_full);
void spw_cli_verdict_print(const struct spw_cli_sim_result *result, int code, bool verbose);

/* Prints a line for each device whose memory was held by several processes at the same time. */
void spw_cli_verdict_shared(const struct spw_cli_sim_result *result);

/* Returns the verdict as JSON. The caller deletes it:
 *
 * {"verdict": "fits" | "fits too tightly" | "spills" | "continued" | "does not fit" | "failed" |
 *             "unused" | "not recorded",
 *  "problem": WHY, if it is "not recorded",
 *  "exit_code": N, "profile": ID, "host_peak_bytes": N,
 *  "devices": [{"process": NAME, "pid": N, "device": N, "pooled": BOOL, ... bytes ...,
 *               "step": {"ms": [LEAST, MOST], "basis": "roofline", ...} or null,
 *               "last_oom": {...} or null}]} */
cJSON *spw_cli_verdict_json(const struct spw_cli_sim_result *result, int code);

/* Returns the value of "verdict" in this JSON, a static string. */
const char *spw_cli_verdict_json_name(const struct spw_cli_sim_result *result, int code);

/* If SPILLWAY_SIM_PROGRESS allows it, starts to report the progress of every launched program.
 * Every ten seconds, one line for each device in use is written. The run directory must exist. */
void spw_cli_progress_start(void);

/* The run of one rank. The figures are in bytes. They belong to the device whose memory the rank
 * needs most. */
struct spw_cli_rank_row {
    unsigned rank;
    const char *verdict; /* static */
    uint64_t live_peak_bytes;
    uint64_t need, need_most; /* memory needed of a card: estimate, upper bound */
    struct spw_cli_cards cards;
};

/* Returns the row of a run whose command ended with exit code `code`. */
struct spw_cli_rank_row spw_cli_rank_row_of(unsigned rank, const struct spw_cli_sim_result *result,
                                            int code);

/* Prints the rows, and names the ranks that need the most and the least memory. */
void spw_cli_ranks_print(const struct spw_cli_rank_row *rows, size_t count, unsigned world);

/* Implements `spillway sim --compare`. Runs `arguments` first without the pool and then with the
 * pool. If a run does not fit, repeats it with ample memory. Then runs both variants on smaller
 * devices, without output. Prints the outcome of each run, the peaks, and the smallest size that
 * worked. Returns the exit code of the first run with the pool. */
int spw_cli_compare(const char *command, char **arguments, spw_cli_prepare *prepare);
