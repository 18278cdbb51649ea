/* The end of a job of several ranks under `spillway run`, of which each rank writes only what went
 * wrong. One thread. */
#pragma once

/* Writes one line to stderr: how the peaks of the ranks in the run directory differ. Nothing for
 * fewer than two ranks, or when the user wants no such summary. */
void spw_cli_job_summary(void);
