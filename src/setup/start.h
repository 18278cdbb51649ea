/* The start of spillway in a process, once CUDA is initialised and the devices are known.
 *
 * The caller holds spw_locks.process, and calls the functions in this order. */
#pragma once

#include "process/process.h"

/* Reads the options, and reports invalid ones. */
void spw_setup_settings(struct spw_process *process);

/* Opens the statistics, with the figures of each device. */
void spw_setup_statistics(struct spw_process *process);

/* Begins to write: statistics, recording, log. */
void spw_setup_outputs(struct spw_process *process);
