/* The parts of the page of `spillway report --html`, which page.c puts together. The events and the
 * moments are collected while the recording is read once. One thread. */
#pragma once

#include <stddef.h>

#include "cli/report/report.h"
#include "record/format.h"

enum { SPW_CLI_PAGE_UNITS_IN_US = 1000 / SPW_RECORD_UNIT_NS };

/* Write a string of JSON that cannot end the script around it; a comma, a key and such a string. */
void spw_cli_page_string(struct spw_writer *out, const char *text);
void spw_cli_page_text(struct spw_writer *out, const char *key, const char *text);

/* The frames of all call sites, each text once: sites share most frames. */
struct spw_cli_page_frames;

/* NULL without memory. */
struct spw_cli_page_frames *spw_cli_page_frames_create(void);
void spw_cli_page_frames_free(struct spw_cli_page_frames *frames);

/* The number of a frame's text, from 0 on; SIZE_MAX without memory. New texts beyond a limit share
 * a number. */
size_t spw_cli_page_frames_number(struct spw_cli_page_frames *frames, const char *text);

/* Writes ", "frames": ..." for the texts by number. */
void spw_cli_page_frames_write(const struct spw_cli_page_frames *frames, struct spw_writer *out);

/* Marked parts and steps, out of memory, and decisions of the policy's rules. */
struct spw_cli_page_events;

/* NULL without memory. */
struct spw_cli_page_events *spw_cli_page_events_create(const struct spw_cli_report *report);
void spw_cli_page_events_free(struct spw_cli_page_events *events);

/* Takes an event of any device, after the state has taken it. */
void spw_cli_page_events_take(struct spw_cli_page_events *events,
                              const struct spw_cli_report *report,
                              const struct spw_cli_event *event, const struct spw_cli_block *freed);

/* Writes ", KEY: ..." for steps, parts, out of memory and rules. */
void spw_cli_page_events_write(struct spw_cli_page_events *events, struct spw_cli_report *report);

/* Memory over time. Time is divided into windows. Each keeps the moment of its peak and the moment
 * at its end, so that every peak is there. */
struct spw_cli_page_moments;

/* For a device of a categorised report, whose state must be that at the end. `devices`: number of
 * shown devices, which share a limit on windows and sites. NULL without memory. */
struct spw_cli_page_moments *spw_cli_page_moments_create(const struct spw_cli_report *report,
                                                         int ordinal, unsigned devices);
void spw_cli_page_moments_free(struct spw_cli_page_moments *moments);

/* Takes an event of that device, after the state has taken it. */
void spw_cli_page_moments_take(struct spw_cli_page_moments *moments,
                               const struct spw_cli_report *report,
                               const struct spw_cli_event *event,
                               const struct spw_cli_block *freed);

/* Writes ", KEY: ..." for call sites, moments, committed memory and moves. The frames of the sites
 * go into `frames`. */
void spw_cli_page_moments_write(const struct spw_cli_page_moments *moments,
                                struct spw_cli_report *report, struct spw_cli_page_frames *frames);
