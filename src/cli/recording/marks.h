/* The parts of a program that it has marked in its recording (spillway_mark_begin): how often each
 * ran, how long, and how much memory was live meanwhile. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/recording/events.h"

enum { SPW_CLI_MARKS = 64, SPW_CLI_MARK_NAME = 128 };

struct spw_cli_mark {
    char name[SPW_CLI_MARK_NAME];   /* plain text, cut off where it is longer */
    uint64_t count;                 /* how often it has begun */
    uint64_t time;                  /* in it, in units; parts that overlap count once */
    uint64_t began;                 /* while it is open */
    uint64_t open;                  /* begun and not ended, by one thread or several */
    uint64_t peak[SPW_DEVICES_MAX]; /* highest live bytes of each device while it was open */
};

/* In the order in which they began first. */
struct spw_cli_marks {
    struct spw_cli_mark list[SPW_CLI_MARKS];
    unsigned count;
    unsigned open; /* of the list */
    uint64_t lost; /* that are not in the list, which is full */
};

/* Takes an event that begins or ends a part. `live` is the live bytes of each device. */
void spw_cli_marks_take(struct spw_cli_marks *marks, const struct spw_cli_event *event,
                        const uint64_t live[SPW_DEVICES_MAX]);

/* Live bytes of a device have risen to `live`. */
void spw_cli_marks_rise(struct spw_cli_marks *marks, int device, uint64_t live);

/* The time in a part, in units, if it is `now`: a part that is open goes on. */
uint64_t spw_cli_mark_time(const struct spw_cli_mark *mark, uint64_t now);

/* The name of such an event, as spw_cli_mark has it. */
void spw_cli_mark_name(const struct spw_cli_event *event, char ret_name[SPW_CLI_MARK_NAME]);
