/* The parts that a program marks in its recording (spillway_mark_begin). Each has the number of its
 * runs, their time, and the peak of live memory in them. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/recording/events.h"

enum { SPW_CLI_MARKS = 64, SPW_CLI_MARK_NAME = 128 };

struct spw_cli_mark {
    char name[SPW_CLI_MARK_NAME];   /* plain text; a longer name is cut off */
    uint64_t count;                 /* runs */
    uint64_t time;                  /* of complete runs, in units; overlapping runs count once */
    uint64_t began;                 /* when it was last opened */
    uint64_t open;                  /* runs not ended yet, of one thread or several */
    uint64_t peak[SPW_DEVICES_MAX]; /* highest live bytes of each device while it was open */
};

/* The parts, ordered by their first beginning. */
struct spw_cli_marks {
    struct spw_cli_mark list[SPW_CLI_MARKS];
    unsigned count;
    unsigned open; /* parts of the list that are open */
    uint64_t lost; /* beginnings of parts without room in the list */
};

/* _take takes an event that begins or ends a part, with the live bytes of each device. _rise takes
 * a rise of a device's live bytes to `live`. */
void spw_cli_marks_take(struct spw_cli_marks *marks, const struct spw_cli_event *event,
                        const uint64_t live[SPW_DEVICES_MAX]);
void spw_cli_marks_rise(struct spw_cli_marks *marks, int device, uint64_t live);

/* The time of a part's runs until `now`, including the open run, in units. */
uint64_t spw_cli_mark_time(const struct spw_cli_mark *mark, uint64_t now);

/* Writes an event's name in the form of struct spw_cli_mark. */
void spw_cli_mark_name(const struct spw_cli_event *event, char ret_name[SPW_CLI_MARK_NAME]);
