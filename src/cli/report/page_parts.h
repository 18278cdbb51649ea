/* The parts of the page of `spillway report --html`, which page.c puts together. One reading of
 * the recording collects the events and the moments. One thread. */
#pragma once

#include <stddef.h>

#include "cli/report/report.h"
#include "record/format.h"

enum { SPW_CLI_PAGE_UNITS_IN_US = 1000 / SPW_RECORD_UNIT_NS };

/* _string writes a JSON string that cannot end the script around it. _text writes a comma, a key
 * and such a string. */
void spw_cli_page_string(struct spw_writer *out, const char *text);
void spw_cli_page_text(struct spw_writer *out, const char *key, const char *text);

/* The texts of all call sites' frames. Each text is kept once, because sites share most frames. */
struct spw_cli_page_frames;

/* NULL without memory. */
struct spw_cli_page_frames *spw_cli_page_frames_create(void);
void spw_cli_page_frames_free(struct spw_cli_page_frames *frames);

/* The number of a frame's text, from 0 on; SIZE_MAX without memory. Beyond a limit on their
 * size, all new texts share one number. */
size_t spw_cli_page_frames_number(struct spw_cli_page_frames *frames, const char *text);

/* Writes ", "frames": ...": the texts, in order of their numbers. */
void spw_cli_page_frames_write(const struct spw_cli_page_frames *frames, struct spw_writer *out);

/* Marked parts and steps, failed allocations, and decisions of the policy's rules. */
struct spw_cli_page_events;

/* NULL without memory. */
struct spw_cli_page_events *spw_cli_page_events_create(const struct spw_cli_report *report);
void spw_cli_page_events_free(struct spw_cli_page_events *events);

/* Takes an event of any device, after the state has taken it. */
void spw_cli_page_events_take(struct spw_cli_page_events *events,
                              const struct spw_cli_report *report,
                              const struct spw_cli_event *event, const struct spw_cli_block *freed);

/* Writes ", KEY: ..." for steps, parts, failed allocations and rules. */
void spw_cli_page_events_write(struct spw_cli_page_events *events, struct spw_cli_report *report);

/* Memory over time. Time is divided into windows. Each window keeps the moment of its peak and the
 * moment at its end, so that no peak is lost. */
struct spw_cli_page_moments;

/* The report must be categorised, and its state must be the one at the end of the recording.
 * `devices`: number of shown devices, which share a limit on windows and sites. NULL without
 * memory. */
struct spw_cli_page_moments *spw_cli_page_moments_create(const struct spw_cli_report *report,
                                                         int ordinal, unsigned devices);
void spw_cli_page_moments_free(struct spw_cli_page_moments *moments);

/* Takes an event of the moments' device, after the state has taken it. */
void spw_cli_page_moments_take(struct spw_cli_page_moments *moments,
                               const struct spw_cli_report *report,
                               const struct spw_cli_event *event,
                               const struct spw_cli_block *freed);

/* Writes ", KEY: ..." for call sites, moments, committed memory and moves. The frames of the sites
 * go into `frames`. */
void spw_cli_page_moments_write(const struct spw_cli_page_moments *moments,
                                struct spw_cli_report *report, struct spw_cli_page_frames *frames);
