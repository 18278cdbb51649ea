/* Progress of a simulated run: a line on stderr every ten seconds. One thread. */
#pragma once

/* From now on, if SPILLWAY_SIM_PROGRESS allows it, writes the progress of every launched program.
 * The run directory must exist. */
void spw_cli_progress_start(void);
