/* Reads the forward passes of modules from a recording (SPILLWAY_RECORD_MODULES). One thread. */
#pragma once

#include <stdint.h>

#include "cli/advise/reading.h"

/* _mark takes an event that names a mark. _note takes one that names a pass
 * (SPW_RECORD_NAMED_PASS). */
void spw_cli_advise_passes_mark(struct spw_cli_advise_reading *reading,
                                const struct spw_cli_event *event);
void spw_cli_advise_passes_note(struct spw_cli_advise_reading *reading,
                                const struct spw_cli_event *event);

/* Returns the pass that allocates a block on a thread: the open one, except for the threads of the
 * backward pass. */
uint32_t spw_cli_advise_passes_open(const struct spw_cli_advise_reading *reading, uint32_t thread);

/* Adds the time of a kernel that touches these bytes to the module whose pass is open. */
void spw_cli_advise_passes_charge(struct spw_cli_advise_reading *reading,
                                  const struct spw_cli_event *event, double bytes);

/* Called after the last event: finds the memory that passes save for backward, the memory that they
 * need, and their time. */
void spw_cli_advise_passes_finish(struct spw_cli_advise_reading *reading);
