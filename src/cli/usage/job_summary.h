/* A summary at the end of a job of several ranks under `spillway run`; each rank writes only its
 * problems. One thread. */
#pragma once

/* Writes one line to stderr that compares the peaks of the ranks in the run directory. Writes
 * nothing for fewer than two ranks, or if the user has disabled the summary. */
void spw_cli_job_summary(void);
