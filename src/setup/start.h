/* The start of spillway in a process: options, statistics, call sites, recording, the words for the
 * mode. It does not know the handlers of calls.
 *
 *   mode        words for the mode, and for its reason
 *   recording   starts the recording
 *   sites       starts the charges of call sites in the statistics
 *   start       reads the options, opens the statistics, starts the outputs
 *
 * The functions below are called in the order of their declarations, when CUDA is initialised and
 * the devices are known. The caller holds spw_locks.process. */
#pragma once

#include "process/process.h"

/* Reads the options, and reports invalid ones. */
void spw_setup_settings(struct spw_process *process);

/* Opens the statistics, with the figures of each device. */
void spw_setup_statistics(struct spw_process *process);

/* Starts the outputs: statistics, recording, log. */
void spw_setup_outputs(struct spw_process *process);
