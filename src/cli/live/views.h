/* The views of `spillway top`, and its file for Prometheus. One thread. */
#pragma once

#include "callsite/shm.h"
#include "cli/console/json.h"
#include "cli/inspect/running.h"
#include "cli/live/screen.h"

/* The key of the list's order: figures descend, ranks and pids ascend. */
enum spw_cli_sort {
    SPW_CLI_SORT_LIVE,
    SPW_CLI_SORT_HOST,
    SPW_CLI_SORT_RATE,
    SPW_CLI_SORT_RANK,
    SPW_CLI_SORT_PID,
    SPW_CLI_SORT_COUNT
};

/* The word of an order; NULL after the last order. */
const char *spw_cli_sort_name(enum spw_cli_sort sort);

/* Sorts the list in place. */
void spw_cli_list_sort(struct spw_cli_running *running, enum spw_cli_sort sort);

/* Adds the lines of the list, in its order. Marks the process `chosen`; 0: none. Returns the number
 * of the marked line, or -1. */
int spw_cli_list_view(struct spw_cli_screen *screen, const struct spw_cli_running *running,
                      enum spw_cli_sort sort, int chosen);

/* Adds the lines of a process. `share` holds its call sites; NULL: there are none. */
void spw_cli_process_view(struct spw_cli_screen *screen, const struct spw_cli_watched *watched,
                          const struct spw_callsite_shm *share);

/* Add to an object of JSON: the list, as "processes"; a process, with all counters; the time of
 * day, as "time" (RFC 3339). */
void spw_cli_list_json(cJSON *object, const struct spw_cli_running *running);
void spw_cli_process_json(cJSON *object, const struct spw_cli_watched *watched,
                          const struct spw_callsite_shm *share);
void spw_cli_time_json(cJSON *object);

/* Writes the counters of processes in the text format of Prometheus, version 0.0.4, for the
 * textfile collector of its node exporter. The file gets its name only when it is complete, so that
 * a reader never sees a part of it. False with errno set on failure. */
bool spw_cli_prometheus_write(const char *path, struct spw_cli_watched *const *list, int count);
