/* The list of the processes under spillway. One thread. */
#pragma once

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

/* The word of an order; NULL behind the last one. */
const char *spw_cli_sort_name(enum spw_cli_sort sort);

/* Sorts the list in place. */
void spw_cli_list_sort(struct spw_cli_running *running, enum spw_cli_sort sort);

/* Adds the lines of the list, in its order. Marks the process `chosen`; 0: none. Returns the number
 * of its line, or -1. */
int spw_cli_list_view(struct spw_cli_screen *screen, const struct spw_cli_running *running,
                      enum spw_cli_sort sort, int chosen);

/* Adds the list to an object of JSON, as "processes". */
void spw_cli_list_json(cJSON *object, const struct spw_cli_running *running);
