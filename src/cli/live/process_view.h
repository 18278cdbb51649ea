/* The view of one process: its devices, and the call sites that hold most. One thread. */
#pragma once

#include "callsite/shm.h"
#include "cli/console/json.h"
#include "cli/inspect/watched.h"
#include "cli/live/screen.h"

/* Adds the lines of a process. `share` holds its call sites; NULL: there are none. */
void spw_cli_process_view(struct spw_cli_screen *screen, const struct spw_cli_watched *watched,
                          const struct spw_callsite_shm *share);

/* Adds the content of the view, with all counters, to an object of JSON. */
void spw_cli_process_json(cJSON *object, const struct spw_cli_watched *watched,
                          const struct spw_callsite_shm *share);

/* Adds the time of day, as "time" (RFC 3339). */
void spw_cli_time_json(cJSON *object);
