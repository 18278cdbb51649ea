/* Progress of a simulated run: a line on stderr every ten seconds. One thread. */
#pragma once

/* From now on, if SPILLWAY_SIM_PROGRESS says so, a program that is launched is reported on while it
 * runs. The run directory exists. */
void spw_cli_progress_start(void);
