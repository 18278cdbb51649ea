/* The verdict of a simulated run: a few lines on stderr. */
#pragma once

#include "cli/reports/sim_result.h"

/* Says whether the command, which ended with exit code `code`, fits, and what it took. */
void spw_cli_verdict_print(const struct spw_cli_sim_result *fit, int code);

/* Says what a real card adds to every figure. */
void spw_cli_verdict_caution(void);

/* Says so if processes used the same device, each as if it had it for itself. */
void spw_cli_verdict_shared(const struct spw_cli_sim_result *fit);

/* Says only how the run came out, in one line: "spillway: LABEL: ...". */
void spw_cli_verdict_outcome(const struct spw_cli_sim_result *fit, int code, const char *label);
