/* The events on the page, collected while the recording is read once. One thread. */
#pragma once

#include "cli/report/report.h"

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
