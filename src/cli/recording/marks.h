/* The parts that a program marks in its recording (spillway_mark_begin). For each part, the number
 * of its runs, the time that they took, and the peak of live memory during them are kept. One
 * thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/recording/events.h"

enum { SPW_CLI_MARKS = 64, SPW_CLI_MARK_NAME = 128 };

struct spw_cli_mark {
    char name[SPW_CLI_MARK_NAME]; /* plain text; a longer name is cut off */
    uint64_t count;               /* runs */
    uint64_t time;  /* total time of complete runs, in units; overlapping runs count once */
    uint64_t began; /* when the part was last opened */
    uint64_t open;  /* number of runs that have not ended, on all threads together */
    uint64_t peak[SPW_DEVICES_MAX]; /* highest live bytes of each device while the part was open */
};

/* The parts, ordered by their first beginning. */
struct spw_cli_marks {
    struct spw_cli_mark list[SPW_CLI_MARKS];
    unsigned count;
    unsigned open; /* number of parts in the list that are open */
    uint64_t lost; /* number of begin events that found no room in the list */
};

/* _take takes an event that begins or ends a part. Its `live` is the live bytes of each device.
 * _rise is called when the live bytes of a device have risen to `live`. */
void spw_cli_marks_take(struct spw_cli_marks *marks, const struct spw_cli_event *event,
                        const uint64_t live[SPW_DEVICES_MAX]);
void spw_cli_marks_rise(struct spw_cli_marks *marks, int device, uint64_t live);

/* Returns the time that the runs of a part took until `now`, in units. The open run is included. */
uint64_t spw_cli_mark_time(const struct spw_cli_mark *mark, uint64_t now);

/* Writes the name in an event in the form that struct spw_cli_mark has. */
void spw_cli_mark_name(const struct spw_cli_event *event, char ret_name[SPW_CLI_MARK_NAME]);
