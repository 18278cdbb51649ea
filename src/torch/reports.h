/* Reports of tensors to the simulated GPU, which looks up the blocks that the arguments of a kernel
 * name. On a real GPU, there are no reports.
 *
 * A report is kept here until the simulator looks for a block. A tensor that was allocated after
 * the last report and is freed again needs no report. The simulator takes the reports while it
 * holds its own lock, so no function of the driver is called with spw_locks.tensors held. */
#pragma once

#include <stdint.h>

/* Finds out whether the GPU is simulated. Called once, before the first tensor. No lock is held. */
void spw_torch_reports_begin(void);

/* Reports a tensor of `bytes`, or with 0 bytes the end of a tensor. Caller holds
 * spw_locks.tensors. */
void spw_torch_reports_add(uint64_t address, uint64_t bytes);

/* If there are many reports, lets the simulator take them. No lock is held. */
void spw_torch_reports_limit(void);
