/* The parts of the page that `spillway report --html` writes: each collects what it shows while the
 * recording is read once, then writes it as JSON. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/reports/recording.h"
#include "record/format.h"

enum { SPW_CLI_PAGE_UNITS_IN_US = 1000 / SPW_RECORD_UNIT_NS };

/* ---- text inside of a script ---- */

/* A string of JSON that cannot end the script that it stands in; a comma, a key and such a string.
 */
void spw_cli_page_string(struct spw_writer *out, const char *text);
void spw_cli_page_text(struct spw_writer *out, const char *key, const char *text);

/* ---- frames of call sites ---- */

struct spw_cli_page_frames;

/* NULL without memory. */
struct spw_cli_page_frames *spw_cli_page_frames_create(void);
void spw_cli_page_frames_free(struct spw_cli_page_frames *frames);

/* The number of a frame's text, from 0 on; SIZE_MAX without memory. When there are too many texts,
 * new ones share a number. */
size_t spw_cli_page_frames_number(struct spw_cli_page_frames *frames, const char *text);

/* Writes ", "frames": ..." for the texts by number. */
void spw_cli_page_frames_write(const struct spw_cli_page_frames *frames, struct spw_writer *out);

/* ---- memory over time ---- */

/* Time is cut into windows. Each keeps the moment at which most was live, and the one at its end,
 * so that every peak is there. */
struct spw_cli_page_moments;

/* Of a device of a categorised report, whose state is that at the end. NULL without memory.
 * `devices` are shown in all: the more, the fewer windows and sites each has. */
struct spw_cli_page_moments *spw_cli_page_moments_create(const struct spw_cli_report *report,
                                                         int ordinal, unsigned devices);
void spw_cli_page_moments_free(struct spw_cli_page_moments *moments);

/* An event of that device, after the state has taken it. */
void spw_cli_page_moments_take(struct spw_cli_page_moments *moments,
                               const struct spw_cli_report *report,
                               const struct spw_cli_event *event,
                               const struct spw_cli_block *freed);

/* Writes ", KEY: ..." for call sites, moments, committed memory and moves. The frames of the sites
 * go into `frames`. */
void spw_cli_page_moments_write(const struct spw_cli_page_moments *moments,
                                struct spw_cli_report *report, struct spw_cli_page_frames *frames);

/* ---- what happened ---- */

/* Marked parts and steps, out of memory, and what the rules of the policy decided. */
struct spw_cli_page_events;

/* NULL without memory. */
struct spw_cli_page_events *spw_cli_page_events_create(const struct spw_cli_report *report);
void spw_cli_page_events_free(struct spw_cli_page_events *events);

/* An event of any device, after the state has taken it. */
void spw_cli_page_events_take(struct spw_cli_page_events *events,
                              const struct spw_cli_report *report,
                              const struct spw_cli_event *event, const struct spw_cli_block *freed);

/* Writes ", KEY: ..." for steps, parts, out of memory and rules. */
void spw_cli_page_events_write(struct spw_cli_page_events *events, struct spw_cli_report *report);
