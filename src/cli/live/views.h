/* The views of `spillway top`, and the file that it writes for Prometheus. One thread. */
#pragma once

#include "callsite/shm.h"
#include "cli/console/json.h"
#include "cli/inspect/running.h"
#include "cli/live/screen.h"

/* The sort key of the list. Figures are sorted in descending order, ranks and pids in ascending
 * order. */
enum spw_cli_sort {
    SPW_CLI_SORT_LIVE,
    SPW_CLI_SORT_HOST,
    SPW_CLI_SORT_RATE,
    SPW_CLI_SORT_RANK,
    SPW_CLI_SORT_PID,
    SPW_CLI_SORT_COUNT
};

/* Returns the word for a sort key, or NULL after the last key. */
const char *spw_cli_sort_name(enum spw_cli_sort sort);

/* Sorts the list in place. */
void spw_cli_list_sort(struct spw_cli_running *running, enum spw_cli_sort sort);

/* Adds the lines of the list in the list's order. Marks the process with the pid `chosen`; 0: no
 * process. Returns the number of the marked line, or -1 if no line is marked. */
int spw_cli_list_view(struct spw_cli_screen *screen, const struct spw_cli_running *running,
                      enum spw_cli_sort sort, int chosen);

/* Adds the lines of a process. `share` holds the call sites of the process; NULL: there are
 * none. */
void spw_cli_process_view(struct spw_cli_screen *screen, const struct spw_cli_watched *watched,
                          const struct spw_callsite_shm *share);

/* Add to a JSON object. _list adds the list as "processes". _process adds a process with all its
 * counters. _time adds the time of day as "time" (RFC 3339). */
void spw_cli_list_json(cJSON *object, const struct spw_cli_running *running);
void spw_cli_process_json(cJSON *object, const struct spw_cli_watched *watched,
                          const struct spw_callsite_shm *share);
void spw_cli_time_json(cJSON *object);

/* Writes the counters of processes in the text format of Prometheus, version 0.0.4. The textfile
 * collector of Prometheus' node exporter reads this file. The file gets its name only after it is
 * complete, so that a reader never sees a partial file. On failure, sets errno and returns
 * false. */
bool spw_cli_prometheus_write(const char *path, struct spw_cli_watched *const *list, int count);
